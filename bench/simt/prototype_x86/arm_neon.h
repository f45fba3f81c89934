// Minimal stand-in for arm_neon.h on x86_64 (SSE4/AVX2/FMA/F16C, 16-byte vectors): only what the warp prototype uses.
#pragma once
#include <immintrin.h>
#include <stdint.h>
#include <string.h>
typedef float float32x4_t __attribute__((vector_size(16))); typedef uint32_t uint32x4_t __attribute__((vector_size(16))); typedef int32_t int32x4_t __attribute__((vector_size(16)));
typedef uint64_t uint64x2_t __attribute__((vector_size(16))); typedef int64_t int64x2_t __attribute__((vector_size(16))); typedef uint16_t uint16x8_t __attribute__((vector_size(16)));
typedef struct { uint16_t v[8]; } float16x8_s; typedef uint16x8_t float16x8_t; typedef uint16_t float16_t;
typedef uint32_t uint32x2_t __attribute__((vector_size(8))); typedef int32_t int32x2_t __attribute__((vector_size(8)));
typedef struct { uint32x4_t val[4]; } uint32x4x4_t;
#define NI_ static inline __attribute__((always_inline))
#define SH __builtin_shuffle
NI_ float32x4_t vabsq_f32(float32x4_t a){ return (float32x4_t)((uint32x4_t)a&0x7fffffffu); }
NI_ int32x4_t vaddq_s32(int32x4_t a,int32x4_t b){ return a+b; } NI_ int32x4_t vsubq_s32(int32x4_t a,int32x4_t b){ return a-b; }
NI_ uint32_t vaddvq_u32(uint32x4_t a){ return a[0]+a[1]+a[2]+a[3]; }
NI_ uint32x4_t vbslq_u32(uint32x4_t m,uint32x4_t a,uint32x4_t b){ return (m&a)|(~m&b); }
NI_ int32x4_t vcvtq_s32_f32(float32x4_t a){ return (int32x4_t)_mm_cvttps_epi32((__m128)a); }
NI_ float32x4_t vdupq_n_f32(float x){ return (float32x4_t){x,x,x,x}; } NI_ int32x4_t vdupq_n_s32(int x){ return (int32x4_t){x,x,x,x}; } NI_ uint32x4_t vdupq_n_u32(uint32_t x){ return (uint32x4_t){x,x,x,x}; }
#define vextq_u32(a,b,n) ((uint32x4_t)_mm_alignr_epi8((__m128i)(b),(__m128i)(a),4*(n)))
NI_ float32x4_t vfmaq_f32(float32x4_t c,float32x4_t a,float32x4_t b){ return (float32x4_t)_mm_fmadd_ps((__m128)a,(__m128)b,(__m128)c); }
NI_ __m128 h4_(uint16x8_t a,int hi){ return _mm_cvtph_ps(hi?_mm_unpackhi_epi64((__m128i)a,(__m128i)a):(__m128i)a); }
#define vfmlalq_laneq_low_f16(c,a,b,l) ((float32x4_t)_mm_fmadd_ps(h4_(a,0),_mm_set1_ps(_cvtsh_ss((b)[l])),(__m128)(c)))
#define vfmlalq_laneq_high_f16(c,a,b,l) ((float32x4_t)_mm_fmadd_ps(h4_(a,1),_mm_set1_ps(_cvtsh_ss((b)[l])),(__m128)(c)))
NI_ int32x2_t vget_low_s32(int32x4_t a){ return (int32x2_t){a[0],a[1]}; } NI_ uint32x2_t vget_low_u32(uint32x4_t a){ return (uint32x2_t){a[0],a[1]}; }
NI_ float32x4_t vld1q_f32(const void*p){ return (float32x4_t)_mm_loadu_ps(p); } NI_ uint32x4_t vld1q_u32(const void*p){ return (uint32x4_t)_mm_loadu_si128(p); } NI_ uint16x8_t vld1q_u16(const void*p){ return (uint16x8_t)_mm_loadu_si128(p); } NI_ uint16x8_t vld1q_f16(const void*p){ return (uint16x8_t)_mm_loadu_si128(p); }
NI_ void vst1q_f32(void*p,float32x4_t a){ _mm_storeu_ps(p,(__m128)a); } NI_ void vst1q_u32(void*p,uint32x4_t a){ _mm_storeu_si128(p,(__m128i)a); } NI_ void vst1q_u16(void*p,uint16x8_t a){ _mm_storeu_si128(p,(__m128i)a); }
NI_ void t4_(uint32x4_t*r){ __m128 a=(__m128)r[0],b=(__m128)r[1],c=(__m128)r[2],d=(__m128)r[3]; _MM_TRANSPOSE4_PS(a,b,c,d); r[0]=(uint32x4_t)a;r[1]=(uint32x4_t)b;r[2]=(uint32x4_t)c;r[3]=(uint32x4_t)d; }
NI_ uint32x4x4_t vld4q_u32(const void*p){ uint32x4x4_t r; for(int i=0;i<4;i++) r.val[i]=vld1q_u32((const char*)p+16*i); t4_(r.val); return r; }
NI_ void vst4q_u32(void*p,uint32x4x4_t r){ t4_(r.val); for(int i=0;i<4;i++) vst1q_u32((char*)p+16*i,r.val[i]); }
NI_ float32x4_t vmaxq_f32(float32x4_t a,float32x4_t b){ return (float32x4_t)_mm_max_ps((__m128)a,(__m128)b); } NI_ float32x4_t vminq_f32(float32x4_t a,float32x4_t b){ return (float32x4_t)_mm_min_ps((__m128)a,(__m128)b); }
NI_ float32x4_t vmaxnmq_f32(float32x4_t a,float32x4_t b){ return (float32x4_t)_mm_blendv_ps(_mm_max_ps((__m128)a,(__m128)b),(__m128)a,_mm_cmpunord_ps((__m128)b,(__m128)b)); }
NI_ float32x4_t vminnmq_f32(float32x4_t a,float32x4_t b){ return (float32x4_t)_mm_blendv_ps(_mm_min_ps((__m128)a,(__m128)b),(__m128)a,_mm_cmpunord_ps((__m128)b,(__m128)b)); }
NI_ uint32x4_t vmaxq_u32(uint32x4_t a,uint32x4_t b){ return (uint32x4_t)_mm_max_epu32((__m128i)a,(__m128i)b); } NI_ uint32x4_t vminq_u32(uint32x4_t a,uint32x4_t b){ return (uint32x4_t)_mm_min_epu32((__m128i)a,(__m128i)b); }
NI_ uint32_t vmaxvq_u32(uint32x4_t a){ uint32x4_t b=vmaxq_u32(a,SH(a,(uint32x4_t){2,3,0,1})); b=vmaxq_u32(b,SH(b,(uint32x4_t){1,0,3,2})); return b[0]; } NI_ uint32_t vminvq_u32(uint32x4_t a){ uint32x4_t b=vminq_u32(a,SH(a,(uint32x4_t){2,3,0,1})); b=vminq_u32(b,SH(b,(uint32x4_t){1,0,3,2})); return b[0]; }
NI_ uint64x2_t vmovl_u32(uint32x2_t a){ return (uint64x2_t){a[0],a[1]}; } NI_ int64x2_t vmovl_s32(int32x2_t a){ return (int64x2_t){a[0],a[1]}; }
NI_ uint64x2_t vmovl_high_u32(uint32x4_t a){ return (uint64x2_t)_mm_unpackhi_epi32((__m128i)a,_mm_setzero_si128()); } NI_ int64x2_t vmovl_high_s32(int32x4_t a){ return (int64x2_t)_mm_cvtepi32_epi64(_mm_unpackhi_epi64((__m128i)a,(__m128i)a)); }
NI_ int64x2_t vmull_s32(int32x2_t a,int32x2_t b){ return (int64x2_t){(int64_t)a[0]*b[0],(int64_t)a[1]*b[1]}; } NI_ uint64x2_t vmull_u32(uint32x2_t a,uint32x2_t b){ return (uint64x2_t){(uint64_t)a[0]*b[0],(uint64_t)a[1]*b[1]}; }
NI_ int64x2_t vmull_high_s32(int32x4_t a,int32x4_t b){ return (int64x2_t)_mm_mul_epi32(_mm_unpackhi_epi32((__m128i)a,(__m128i)a),_mm_unpackhi_epi32((__m128i)b,(__m128i)b)); } NI_ uint64x2_t vmull_high_u32(uint32x4_t a,uint32x4_t b){ return (uint64x2_t)_mm_mul_epu32(_mm_unpackhi_epi32((__m128i)a,(__m128i)a),_mm_unpackhi_epi32((__m128i)b,(__m128i)b)); }
NI_ float32x4_t vmulq_f32(float32x4_t a,float32x4_t b){ return a*b; } NI_ float32x4_t vsubq_f32(float32x4_t a,float32x4_t b){ return a-b; } NI_ float32x4_t vreinterpretq_f32_s32(int32x4_t a){ return (float32x4_t)a; }
NI_ uint32x4_t vrev64q_u32(uint32x4_t a){ return SH(a,(uint32x4_t){1,0,3,2}); } NI_ float32x4_t vrndnq_f32(float32x4_t a){ return (float32x4_t)_mm_round_ps((__m128)a,8); }
#define vshlq_n_s32(a,n) ((int32x4_t)(a)<<(n))
#define vshrq_n_s32(a,n) ((int32x4_t)(a)>>(n))
NI_ uint32x4_t vshlq_u32(uint32x4_t a,int32x4_t n){ return (uint32x4_t)_mm_or_si128(_mm_sllv_epi32((__m128i)a,(__m128i)n),_mm_srlv_epi32((__m128i)a,(__m128i)(-n))); }
NI_ int32x4_t vshlq_s32(int32x4_t a,int32x4_t n){ __m128i l=_mm_sllv_epi32((__m128i)a,(__m128i)n),r=_mm_srav_epi32((__m128i)a,(__m128i)(-n)); return (int32x4_t)_mm_blendv_epi8(l,r,(__m128i)(n<0)); }
NI_ float32x4_t vsqrtq_f32(float32x4_t a){ return (float32x4_t)_mm_sqrt_ps((__m128)a); }
NI_ uint16x8_t vtrn1q_u16(uint16x8_t a,uint16x8_t b){ return SH(a,b,(uint16x8_t){0,8,2,10,4,12,6,14}); } NI_ uint16x8_t vtrn2q_u16(uint16x8_t a,uint16x8_t b){ return SH(a,b,(uint16x8_t){1,9,3,11,5,13,7,15}); }
NI_ uint32x4_t vtrn1q_u32(uint32x4_t a,uint32x4_t b){ return SH(a,b,(uint32x4_t){0,4,2,6}); } NI_ uint32x4_t vtrn2q_u32(uint32x4_t a,uint32x4_t b){ return SH(a,b,(uint32x4_t){1,5,3,7}); }
NI_ uint64x2_t vtrn1q_u64(uint64x2_t a,uint64x2_t b){ return SH(a,b,(uint64x2_t){0,2}); } NI_ uint64x2_t vtrn2q_u64(uint64x2_t a,uint64x2_t b){ return SH(a,b,(uint64x2_t){1,3}); }
NI_ float32x4_t vuzp1q_f32(float32x4_t a,float32x4_t b){ return SH(a,b,(uint32x4_t){0,2,4,6}); } NI_ float32x4_t vuzp2q_f32(float32x4_t a,float32x4_t b){ return SH(a,b,(uint32x4_t){1,3,5,7}); } NI_ uint32x4_t vuzp1q_u32(uint32x4_t a,uint32x4_t b){ return SH(a,b,(uint32x4_t){0,2,4,6}); }
NI_ float32x4_t vzip1q_f32(float32x4_t a,float32x4_t b){ return SH(a,b,(uint32x4_t){0,4,1,5}); } NI_ float32x4_t vzip2q_f32(float32x4_t a,float32x4_t b){ return SH(a,b,(uint32x4_t){2,6,3,7}); }
