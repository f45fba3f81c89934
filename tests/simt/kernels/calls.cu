// Calls that cannot be inlined by the compiler: through pointers, virtual ones, of a function by itself.
typedef int (*Op)(int, int);

__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int mul(int a, int b) { return a * b; }
__device__ Op table[2] = {add, mul};

__device__ __noinline__ int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1) + (n & 1); }
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

struct Shape {
    __device__ virtual int area(int k) const = 0;
};
struct Square : Shape {
    int a;
    __device__ Square(int x) : a(x) {}
    __device__ int area(int k) const override { return a * a + k; }
};
struct Box : Shape {
    int a, b;
    __device__ Box(int x, int y) : a(x), b(y) {}
    __device__ int area(int k) const override { return a * b - k; }
};

// which: 2 for a pointer that is no function
extern "C" __global__ void pointers(int *out, const int *which)
{
    int i = threadIdx.x;
    Op f = which[i] < 2 ? table[which[i]] : (Op)0x1000;
    out[i] = f(i, 7);
}

// depth: how often factorial() calls itself in the last thread
extern "C" __global__ void recursion(int *out, int depth)
{
    int i = threadIdx.x;
    out[i] = factorial(i == 31 ? depth : i % 9) + 1000 * fibonacci(i % 7);
}

extern "C" __global__ void shapes(int *out)
{
    int i = threadIdx.x;
    Square s(i);
    Box b(i, 3);
    const Shape *p = i % 3 ? (const Shape *)&s : (const Shape *)&b;
    out[i] = p->area(i);
}
