// attention_layouts.cuh - tiles as TMA brings them; a part of attention's recipes for sm_90a.
constexpr uint64_t USUAL = 0x1000000000000000; // L2 evicts as usual

// (ROWS,COLUMNS,SLOTS), as TMA brings chunks of columns and wgmma reads rows
template <class T, int ROWS, int COLUMNS, int SLOTS, int APART = ROWS * COLUMNS>
CUTE_HOST_DEVICE constexpr auto rows_layout()
{
    using Atom = conditional_t<COLUMNS % 64 == 0, GMMA::Layout_K_SW128_Atom<T>, GMMA::Layout_K_SW64_Atom<T>>;
    auto const tile = tile_to_shape(Atom{}, Shape<Int<ROWS>, Int<COLUMNS>>{});
    return composition(tile.layout_a(), tile.offset(),
                       make_layout(get<0>(tile.layout_b()), get<1>(tile.layout_b()), make_layout(Int<SLOTS>{}, Int<APART>{})));
}

// (COLUMNS,ROWS,SLOTS): the same, read by columns
template <class T, int COLUMNS, int ROWS, int SLOTS, int APART = ROWS * COLUMNS>
CUTE_HOST_DEVICE constexpr auto columns_layout()
{
    using Atom = conditional_t<COLUMNS % 64 == 0, GMMA::Layout_MN_SW128_Atom<T>, GMMA::Layout_MN_SW64_Atom<T>>;
    auto const tile = tile_to_shape(Atom{}, Shape<Int<COLUMNS>, Int<ROWS>>{}, Step<_2, _1>{});
    return composition(tile.layout_a(), tile.offset(),
                       make_layout(get<0>(tile.layout_b()), get<1>(tile.layout_b()), make_layout(Int<SLOTS>{}, Int<APART>{})));
}

