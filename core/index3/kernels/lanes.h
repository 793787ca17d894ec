// Numbers that are computed side by side: one template serves a single mechanism part (double) and two, four or
// eight of them (Lanes<N>). Every multiply-add is an explicit fused one, so that scalar code, every vector width and
// every instruction set give the same bits; a processor without it computes it slowly. Compiled once per instruction
// set, in a namespace of its own: nothing here may leave its translation unit.
#pragma once

#include <cstdint>
#include <utility>

#if defined(__AVX__)
#include <immintrin.h>
#endif

// everything is inlined into the loops, but where the processor cannot fuse (slow anyway, and a library call per lane),
// where nothing but the bits matters, and under sanitizers (half an hour of compiling)
#if defined(__FP_FAST_FMA) && !defined(RIGSTEP_KERNELS_FOR_SIZE) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define RIGSTEP_INLINE inline __attribute__((always_inline))
#define RIGSTEP_INLINED __attribute__((always_inline))  // of a lambda
#else
#define RIGSTEP_INLINE inline
#define RIGSTEP_INLINED
#endif
// over operations of one shape: a function by itself, so that it keeps nothing for others on the stack
#define RIGSTEP_LOOP __attribute__((noinline))

namespace rigstep::index3::RIGSTEP_ISA {

template <int N>
struct VectorOf;
template <>
struct VectorOf<2> {
  using Type __attribute__((vector_size(2 * sizeof(double)))) = double;
  using Bits __attribute__((vector_size(2 * sizeof(double)))) = std::int64_t;
};
template <>
struct VectorOf<4> {
  using Type __attribute__((vector_size(4 * sizeof(double)))) = double;
  using Bits __attribute__((vector_size(4 * sizeof(double)))) = std::int64_t;
};
template <>
struct VectorOf<8> {
  using Type __attribute__((vector_size(8 * sizeof(double)))) = double;
  using Bits __attribute__((vector_size(8 * sizeof(double)))) = std::int64_t;
};

template <int N>
struct Lanes {
  using Vector = typename VectorOf<N>::Type;
  Vector v;

  Lanes() = default;
  RIGSTEP_INLINE Lanes(Vector vector) : v(vector) {}
  RIGSTEP_INLINE Lanes(double x) : v(x - Vector{}) {}
};

template <class T>
inline constexpr int kWidth = sizeof(T) / sizeof(double);

// f(0) ... f(N - 1), unrolled
template <int N, class F>
RIGSTEP_INLINE void each(const F& f) {
#pragma GCC unroll 64
  for (int k = 0; k < N; ++k) f(k);
}

template <int N>
RIGSTEP_INLINE Lanes<N> operator+(Lanes<N> a, Lanes<N> b) {
  return {a.v + b.v};
}
template <int N>
RIGSTEP_INLINE Lanes<N> operator-(Lanes<N> a, Lanes<N> b) {
  return {a.v - b.v};
}
template <int N>
RIGSTEP_INLINE Lanes<N> operator-(Lanes<N> a) {
  return {-a.v};
}
template <int N>
RIGSTEP_INLINE Lanes<N> operator*(Lanes<N> a, Lanes<N> b) {
  return {a.v * b.v};
}
template <int N>
RIGSTEP_INLINE Lanes<N> operator/(Lanes<N> a, Lanes<N> b) {
  return {a.v / b.v};
}

// a b + c, rounded once
RIGSTEP_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <int N>
RIGSTEP_INLINE Lanes<N> fma(Lanes<N> a, Lanes<N> b, Lanes<N> c) {
#if defined(__AVX512F__)
  if constexpr (N == 8) return {_mm512_fmadd_pd(a.v, b.v, c.v)};
#endif
#if defined(__FMA__)
  if constexpr (N == 4) return {_mm256_fmadd_pd(a.v, b.v, c.v)};
  if constexpr (N == 2) return {_mm_fmadd_pd(a.v, b.v, c.v)};
#endif
  Lanes<N> r;
  for (int k = 0; k < N; ++k) r.v[k] = __builtin_fma(a.v[k], b.v[k], c.v[k]);
  return r;
}

// c - a b, rounded once
RIGSTEP_INLINE double fnma(double a, double b, double c) { return __builtin_fma(-a, b, c); }
template <int N>
RIGSTEP_INLINE Lanes<N> fnma(Lanes<N> a, Lanes<N> b, Lanes<N> c) {
#if defined(__AVX512F__)
  if constexpr (N == 8) return {_mm512_fnmadd_pd(a.v, b.v, c.v)};
#endif
#if defined(__FMA__)
  if constexpr (N == 4) return {_mm256_fnmadd_pd(a.v, b.v, c.v)};
  if constexpr (N == 2) return {_mm_fnmadd_pd(a.v, b.v, c.v)};
#endif
  return fma(-a, b, c);
}

RIGSTEP_INLINE double square_root(double a) { return __builtin_sqrt(a); }
template <int N>
RIGSTEP_INLINE Lanes<N> square_root(Lanes<N> a) {
#if defined(__AVX512F__)
  if constexpr (N == 8) return {_mm512_maskz_sqrt_pd(0xff, a.v)};  // without mask GCC 12 warns
#endif
#if defined(__AVX__)
  if constexpr (N == 4) return {_mm256_sqrt_pd(a.v)};
  if constexpr (N == 2) return {_mm_sqrt_pd(a.v)};
#endif
  Lanes<N> r;
  for (int k = 0; k < N; ++k) r.v[k] = __builtin_sqrt(a.v[k]);
  return r;
}

// a, or -a where the zero `sign` is negative
RIGSTEP_INLINE double flipped(double a, double sign) {
  return __builtin_bit_cast(double, __builtin_bit_cast(std::int64_t, a) ^ __builtin_bit_cast(std::int64_t, sign));
}
template <int N>
RIGSTEP_INLINE Lanes<N> flipped(Lanes<N> a, Lanes<N> sign) {
  using Bits = typename VectorOf<N>::Bits;
  return {(typename VectorOf<N>::Type)((Bits)a.v ^ (Bits)sign.v)};
}

// the larger one; b where either is not a number
RIGSTEP_INLINE double larger(double a, double b) { return a > b ? a : b; }
template <int N>
RIGSTEP_INLINE Lanes<N> larger(Lanes<N> a, Lanes<N> b) {
#if defined(__AVX512F__)
  if constexpr (N == 8) return {_mm512_maskz_max_pd(0xff, a.v, b.v)};
#endif
#if defined(__AVX__)
  if constexpr (N == 4) return {_mm256_max_pd(a.v, b.v)};
#endif
  return {a.v > b.v ? a.v : b.v};
}
RIGSTEP_INLINE double smaller(double a, double b) { return a < b ? a : b; }
template <int N>
RIGSTEP_INLINE Lanes<N> smaller(Lanes<N> a, Lanes<N> b) {
#if defined(__AVX512F__)
  if constexpr (N == 8) return {_mm512_maskz_min_pd(0xff, a.v, b.v)};
#endif
#if defined(__AVX__)
  if constexpr (N == 4) return {_mm256_min_pd(a.v, b.v)};
#endif
  return {a.v < b.v ? a.v : b.v};
}

// yes where a > 0, otherwise (also where a is not a number) no
RIGSTEP_INLINE double where_positive(double a, double yes, double no) { return a > 0.0 ? yes : no; }
template <int N>
RIGSTEP_INLINE Lanes<N> where_positive(Lanes<N> a, Lanes<N> yes, Lanes<N> no) {
  return {a.v > 0.0 ? yes.v : no.v};
}

template <class T>
RIGSTEP_INLINE T magnitude(T a) {
  return larger(a, -a);
}

template <int N>
RIGSTEP_INLINE double lane(Lanes<N> a, int k) {
  return a.v[k];
}

RIGSTEP_INLINE bool all_positive(double a) { return a > 0.0; }
template <int N>
RIGSTEP_INLINE bool all_positive(Lanes<N> a) {
#if defined(__AVX512F__)
  if constexpr (N == 8) return _mm512_cmp_pd_mask(a.v, Lanes<8>(0.0).v, _CMP_GT_OQ) == 0xff;
#endif
#if defined(__AVX__)
  if constexpr (N == 4) return _mm256_movemask_pd(_mm256_cmp_pd(a.v, Lanes<4>(0.0).v, _CMP_GT_OQ)) == 0xf;
#endif
  bool all = true;
  for (int k = 0; k < N; ++k) all = all && a.v[k] > 0.0;
  return all;
}

template <class T>
RIGSTEP_INLINE T load(const double* p) {
  if constexpr (kWidth<T> == 1)
    return *p;
  else
    return T(*reinterpret_cast<const typename T::Vector*>(p));
}
RIGSTEP_INLINE void store(double* p, double a) { *p = a; }
template <int N>
RIGSTEP_INLINE void store(double* p, Lanes<N> a) {
  *reinterpret_cast<typename Lanes<N>::Vector*>(p) = a.v;
}

// Which lane of two vectors in a row each lane takes.
template <int N>
struct Selection {
  const std::int64_t* lane;
  RIGSTEP_INLINE explicit Selection(const std::int64_t* of_lane) : lane(of_lane) {}
  RIGSTEP_INLINE Lanes<N> operator()(Lanes<N> a, Lanes<N> b) const {
    Lanes<N> r;
    for (int k = 0; k < N; ++k) r.v[k] = lane[k] < N ? a.v[lane[k]] : b.v[lane[k] - N];
    return r;
  }
};
#if defined(__AVX512VL__)
template <>
struct Selection<8> {
  __m512i lane;
  RIGSTEP_INLINE explicit Selection(const std::int64_t* of_lane) : lane(_mm512_load_si512(of_lane)) {}
  RIGSTEP_INLINE Lanes<8> operator()(Lanes<8> a, Lanes<8> b) const { return {_mm512_permutex2var_pd(a.v, lane, b.v)}; }
};
template <>
struct Selection<4> {
  __m256i lane;
  RIGSTEP_INLINE explicit Selection(const std::int64_t* of_lane)
      : lane(_mm256_load_si256(reinterpret_cast<const __m256i*>(of_lane))) {}
  RIGSTEP_INLINE Lanes<4> operator()(Lanes<4> a, Lanes<4> b) const { return {_mm256_permutex2var_pd(a.v, lane, b.v)}; }
};
#elif defined(__AVX2__)
template <>
struct Selection<4> {
  __m256i halves;  // two of 32 bits for each lane
  __m256d from_b;  // by the sign
  RIGSTEP_INLINE explicit Selection(const std::int64_t* of_lane) {
    const __m256i lane = _mm256_load_si256(reinterpret_cast<const __m256i*>(of_lane)), low = _mm256_slli_epi64(lane, 1);
    halves = _mm256_or_si256(low, _mm256_slli_epi64(_mm256_add_epi64(low, _mm256_set1_epi64x(1)), 32));
    from_b = _mm256_castsi256_pd(_mm256_slli_epi64(lane, 61));
  }
  RIGSTEP_INLINE __m256d of(__m256d v) const {
    return _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(v), halves));
  }
  RIGSTEP_INLINE Lanes<4> operator()(Lanes<4> a, Lanes<4> b) const {
    return {_mm256_blendv_pd(of(a.v), of(b.v), from_b)};
  }
};
#endif

// ---- vectors and matrices of the space that the bodies live in

template <class T>
struct V3 {
  T x, y, z;
};
// row by row
template <class T>
struct M3 {
  V3<T> x, y, z;
};
// symmetric
template <class T>
struct S3 {
  T xx, yy, zz, yx, zx, zy;
};

template <class T>
RIGSTEP_INLINE V3<T> load3(const double* p) {
  constexpr int W = kWidth<T>;
  return {load<T>(p), load<T>(p + W), load<T>(p + 2 * W)};
}
template <class T>
RIGSTEP_INLINE void store3(double* p, V3<T> a) {
  constexpr int W = kWidth<T>;
  store(p, a.x), store(p + W, a.y), store(p + 2 * W, a.z);
}
template <class T>
RIGSTEP_INLINE M3<T> load33(const double* p) {
  constexpr int W = kWidth<T>;
  return {load3<T>(p), load3<T>(p + 3 * W), load3<T>(p + 6 * W)};
}
template <class T>
RIGSTEP_INLINE S3<T> load_symmetric(const double* p) {
  constexpr int W = kWidth<T>;
  return {load<T>(p), load<T>(p + W), load<T>(p + 2 * W), load<T>(p + 3 * W), load<T>(p + 4 * W), load<T>(p + 5 * W)};
}
template <class T>
RIGSTEP_INLINE void store_symmetric(double* p, S3<T> a) {
  constexpr int W = kWidth<T>;
  store(p, a.xx), store(p + W, a.yy), store(p + 2 * W, a.zz);
  store(p + 3 * W, a.yx), store(p + 4 * W, a.zx), store(p + 5 * W, a.zy);
}

template <class T>
RIGSTEP_INLINE V3<T> operator+(V3<T> a, V3<T> b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class T>
RIGSTEP_INLINE V3<T> operator-(V3<T> a, V3<T> b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <class T>
RIGSTEP_INLINE V3<T> operator-(V3<T> a) {
  return {-a.x, -a.y, -a.z};
}
template <class T>
RIGSTEP_INLINE V3<T> operator*(T s, V3<T> a) {
  return {s * a.x, s * a.y, s * a.z};
}
template <class T>
RIGSTEP_INLINE V3<T> flipped(V3<T> a, T sign) {
  return {flipped(a.x, sign), flipped(a.y, sign), flipped(a.z, sign)};
}
// c + s a
template <class T>
RIGSTEP_INLINE V3<T> fma(T s, V3<T> a, V3<T> c) {
  return {fma(s, a.x, c.x), fma(s, a.y, c.y), fma(s, a.z, c.z)};
}
// c - s a
template <class T>
RIGSTEP_INLINE V3<T> fnma(T s, V3<T> a, V3<T> c) {
  return {fnma(s, a.x, c.x), fnma(s, a.y, c.y), fnma(s, a.z, c.z)};
}
template <class T>
RIGSTEP_INLINE T dot(V3<T> a, V3<T> b) {
  return fma(a.x, b.x, fma(a.y, b.y, a.z * b.z));
}
template <class T>
RIGSTEP_INLINE V3<T> cross(V3<T> a, V3<T> b) {
  return {fnma(a.z, b.y, a.y * b.z), fnma(a.x, b.z, a.z * b.x), fnma(a.y, b.x, a.x * b.y)};
}
// c + a x b
template <class T>
RIGSTEP_INLINE V3<T> add_cross(V3<T> c, V3<T> a, V3<T> b) {
  return {fma(a.y, b.z, fnma(a.z, b.y, c.x)), fma(a.z, b.x, fnma(a.x, b.z, c.y)), fma(a.x, b.y, fnma(a.y, b.x, c.z))};
}
template <class T>
RIGSTEP_INLINE V3<T> operator*(const M3<T>& A, V3<T> b) {
  return {dot(A.x, b), dot(A.y, b), dot(A.z, b)};
}
template <class T>
RIGSTEP_INLINE S3<T> operator+(const S3<T>& a, const S3<T>& b) {
  return {a.xx + b.xx, a.yy + b.yy, a.zz + b.zz, a.yx + b.yx, a.zx + b.zx, a.zy + b.zy};
}
// c + s a
template <class T>
RIGSTEP_INLINE S3<T> fma(T s, const S3<T>& a, const S3<T>& c) {
  return {fma(s, a.xx, c.xx), fma(s, a.yy, c.yy), fma(s, a.zz, c.zz),
          fma(s, a.yx, c.yx), fma(s, a.zx, c.zx), fma(s, a.zy, c.zy)};
}
template <class T>
RIGSTEP_INLINE V3<T> operator*(const S3<T>& S, V3<T> b) {
  return {fma(S.xx, b.x, fma(S.yx, b.y, S.zx * b.z)), fma(S.yx, b.x, fma(S.yy, b.y, S.zy * b.z)),
          fma(S.zx, b.x, fma(S.zy, b.y, S.zz * b.z))};
}
// A' b
template <class T>
RIGSTEP_INLINE V3<T> transposed_times(const M3<T>& A, V3<T> b) {
  return {fma(A.x.x, b.x, fma(A.y.x, b.y, A.z.x * b.z)), fma(A.x.y, b.x, fma(A.y.y, b.y, A.z.y * b.z)),
          fma(A.x.z, b.x, fma(A.y.z, b.y, A.z.z * b.z))};
}
// A S A'
template <class T>
RIGSTEP_INLINE S3<T> rotated(const M3<T>& A, const S3<T>& S) {
  const V3<T> x = S * A.x, y = S * A.y, z = S * A.z;
  return {dot(A.x, x), dot(A.y, y), dot(A.z, z), dot(A.y, x), dot(A.z, x), dot(A.z, y)};
}

}  // namespace rigstep::index3::RIGSTEP_ISA
