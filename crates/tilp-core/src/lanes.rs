//! Random bits and elementary functions for sixteen lanes: polynomials, so that loops vectorise
//! and every system gets the same bits.

use crate::rng::Seed;
use rand::Rng as _;

/// Candidates of a group.
pub const LANES: usize = 16;

/// One value for each candidate of a group.
pub type Lanes = [f32; LANES];

/// Whether every lane is plus zero.
#[inline(always)]
pub fn all_zero(values: &Lanes) -> bool {
    values.iter().fold(0, |bits, value| bits | value.to_bits()) == 0
}

/// Defines a function whose loops are compiled three times: for any processor of the family, for
/// those with AVX2 and fused multiply-add, and for those with AVX-512, chosen when it is called.
///
/// A plain build knows only SSE2. Nothing is contracted or reordered, and a fused multiply-add that
/// is asked for is exact by definition, in hardware or not, so both give the same bits. (A closure
/// handed to a dispatching function would not do: where the compiler decides not to inline it, it
/// silently stays SSE2.)
#[macro_export]
macro_rules! vectorised {
    ($(#[$note:meta])* $visible:vis fn $name:ident($($input:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$note])*
        $visible fn $name($($input: $type),*) {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn plain($($input: $type),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn wide($($input: $type),*) {
                    plain($($input),*);
                }
                #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn widest($($input: $type),*) {
                    plain($($input),*);
                }
                let has_fma = std::is_x86_feature_detected!("fma");
                if has_fma && $crate::lanes::has_avx512() {
                    // SAFETY: the processor has just been found to have what `widest` is built for.
                    return unsafe { widest($($input),*) };
                }
                if has_fma && std::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has just been found to have what `wide` is built for.
                    return unsafe { wide($($input),*) };
                }
            }
            plain($($input),*);
        }
    };
}
pub use crate::vectorised;

/// Whether the processor has the AVX-512 extensions that `vectorised` uses.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn has_avx512() -> bool {
    std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512vl")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512dq")
        && std::is_x86_feature_detected!("avx2")
}

/// Sixteen independent xoshiro128++ generators.
#[derive(Clone)]
pub struct Bits([[u32; LANES]; 4]);

impl Bits {
    /// Generators seeded from one stream.
    pub fn new(seed: Seed) -> Self {
        let mut source = seed.rng();
        let mut state = [[0; LANES]; 4];
        for word in state.iter_mut().flatten() {
            *word = source.next_u32();
        }
        state[0].iter_mut().for_each(|word| *word |= 1); // never all zero
        Self(state)
    }

    /// The next word of every lane.
    #[inline(always)]
    pub fn words(&mut self) -> [u32; LANES] {
        let Self([a, b, c, d]) = self;
        let mut output = [0; LANES];
        for lane in 0..LANES {
            output[lane] = a[lane].wrapping_add(d[lane]).rotate_left(7).wrapping_add(a[lane]);
            let shifted = b[lane] << 9;
            c[lane] ^= a[lane];
            d[lane] ^= b[lane];
            b[lane] ^= c[lane];
            a[lane] ^= d[lane];
            c[lane] ^= shifted;
            d[lane] = d[lane].rotate_left(11);
        }
        output
    }
}

/// Adding 1.5 * 2^23 rounds to an integer and leaves that integer in the low bits.
const ROUND: f32 = 12_582_912.0;

#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    for index in (0..N - 1).rev() {
        sum = sum.mul_add(x, coefficients[index]);
    }
    sum
}

/// 2^x for x between -126 and 126, to 1e-6 relative.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    let x = if x < -126.0 { -126.0 } else { x };
    let x = if x > 126.0 { 126.0 } else { x };
    let shifted = x + ROUND;
    let rest = x - (shifted - ROUND);
    let series = polynomial(
        rest,
        [
            1.0,
            std::f32::consts::LN_2,
            0.240_226_5,
            0.055_503_27,
            0.009_618_026,
            0.001_340_043,
            1.546_973e-4,
        ],
    );
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    series * f32::from_bits(exponent)
}

/// The natural logarithm of a positive normal number, to 1e-6 absolute.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    ln_by(
        x,
        [
            1.0,
            -0.499_999_87,
            0.333_341_83,
            -0.250_021_54,
            0.199_569_78,
            -0.165_606_96,
            0.149_490_96,
            -0.143_773_31,
            0.087_439_45,
        ],
    )
}

/// The logarithm with a series for ln(1 + f) / f.
#[inline(always)]
fn ln_by<const N: usize>(x: f32, series: [f32; N]) -> f32 {
    // The mantissa between sqrt(1/2) and sqrt(2), so that the logarithm is smooth around 1.
    const BASE: u32 = 0x3f35_04f3;
    let offset = x.to_bits().wrapping_sub(BASE);
    let power = (offset as i32 >> 23) as f32;
    let f = f32::from_bits((offset & 0x007f_ffff).wrapping_add(BASE)) - 1.0;
    power.mul_add(std::f32::consts::LN_2, f * polynomial(f, series))
}

/// Two independent standard normals (Box and Muller) from the two halves of a word. The series are
/// short: a relative error of 1e-4 is far below what the sixteen bits resolve.
#[inline(always)]
pub fn normal_pair(bits: u32) -> (f32, f32) {
    let uniform = ((bits >> 16) as i32 as f32 + 0.5) * (1.0 / 65536.0);
    let log = [1.000_004_7, -0.499_903_62, 0.332_567_78, -0.253_978_3, 0.220_703, -0.143_383_13];
    let radius = (-2.0 * ln_by(uniform, log)).sqrt();
    let turn = ((bits & 0xffff) as i32 as f32 - 32767.5) * (1.0 / 65536.0);
    let s = turn * turn;
    let sine = polynomial(s, [6.283_161, -41.336_83, 81.447_71, -74.909_42, 33.548_355]);
    let cosine = polynomial(s, [0.999_959, -19.730_942, 64.671_44, -82.390_81, 45.621_05]);
    (radius * turn * sine, radius * cosine)
}

/// Numbers of a short table: what one register holds.
pub const TABLE: usize = 8;

/// What short tables hold at sixteen places, given as whole numbers.
#[inline(always)]
pub fn look_up<const T: usize>(tables: [&[f32; TABLE]; T], places: &Lanes) -> [Lanes; T] {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just been found to have it.
        return unsafe { permuted(tables, places) };
    }
    tables.map(|table| places.map(|place| table[place as usize % TABLE]))
}

/// A look into a register is one instruction, which no compiler finds in the loop above.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn permuted<const T: usize>(tables: [&[f32; TABLE]; T], places: &Lanes) -> [Lanes; T] {
    use std::arch::x86_64::{
        _mm256_cvttps_epi32, _mm256_loadu_ps, _mm256_permutevar8x32_ps, _mm256_storeu_ps,
    };
    let mut found = [[0.0; LANES]; T];
    for half in [0, LANES / 2] {
        // SAFETY: eight numbers are read where eight are left.
        let place = unsafe { _mm256_cvttps_epi32(_mm256_loadu_ps(places[half..].as_ptr())) };
        for (table, found) in tables.iter().zip(&mut found) {
            // SAFETY: eight numbers are read and written where there are eight.
            unsafe {
                let picked = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table.as_ptr()), place);
                _mm256_storeu_ps(found[half..].as_mut_ptr(), picked);
            }
        }
    }
    found
}

/// A row of a longer table: numbers that are always wanted together share a place in memory.
pub type Row = [f32; 4];

/// The first three columns of the rows at sixteen places, given as whole numbers; beyond the end the
/// last row. The table must not be empty.
#[inline(always)]
pub fn rows(table: &[Row], places: &Lanes) -> [Lanes; 3] {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just been found to have it.
        return unsafe { transposed(table, places) };
    }
    let row = |lane: usize| table[(places[lane] as usize).min(table.len() - 1)];
    std::array::from_fn(|column| std::array::from_fn(|lane| row(lane)[column]))
}

/// Rows are loaded whole and turned into columns: half the time of gathering number by number.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn transposed(table: &[Row], places: &Lanes) -> [Lanes; 3] {
    use std::arch::x86_64::{
        _mm_loadu_ps, _mm256_cvttps_epi32, _mm256_loadu_ps, _mm256_min_epu32, _mm256_set_m128,
        _mm256_set1_epi32, _mm256_shuffle_ps, _mm256_storeu_ps, _mm256_storeu_si256,
        _mm256_unpackhi_ps, _mm256_unpacklo_ps,
    };
    assert!(!table.is_empty(), "a table of rows");
    let last = _mm256_set1_epi32((table.len() - 1).min(i32::MAX as usize) as i32);
    let mut found = [[0.0; LANES]; 3];
    for half in [0, LANES / 2] {
        let mut place = [0u32; LANES / 2];
        // SAFETY: eight numbers are read and written where there are eight.
        unsafe {
            let whole = _mm256_cvttps_epi32(_mm256_loadu_ps(places[half..].as_ptr()));
            _mm256_storeu_si256(place.as_mut_ptr().cast(), _mm256_min_epu32(whole, last));
        }
        // SAFETY: no place is beyond the last row, and a row is four numbers.
        let row = |lane: usize| unsafe {
            _mm_loadu_ps(table.get_unchecked(place[lane] as usize).as_ptr())
        };
        let [a, b, c, d] = [0, 1, 2, 3].map(|lane| _mm256_set_m128(row(lane + 4), row(lane)));
        let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
        let (third_ab, third_cd) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
        let columns = [
            _mm256_shuffle_ps::<0x44>(ab, cd),
            _mm256_shuffle_ps::<0xee>(ab, cd),
            _mm256_shuffle_ps::<0x44>(third_ab, third_cd),
        ];
        for (found, column) in found.iter_mut().zip(columns) {
            // SAFETY: eight numbers are written where there are eight.
            unsafe { _mm256_storeu_ps(found[half..].as_mut_ptr(), column) };
        }
    }
    found
}

/// Numbers before squashing stay within this bound, so that squashing can be undone.
pub const BOUND: f32 = 4.0;

/// From a number to (0, 1): (1 + tanh z) / 2, with z held within [`BOUND`].
#[inline(always)]
pub fn squash(z: f32) -> f32 {
    let z = if z > BOUND { BOUND } else { z };
    let z = if z < -BOUND { -BOUND } else { z };
    // tanh z = z P(z^2) / Q(z^2): cheaper than an exponential, and as good within the bound.
    let s = z * z;
    let above = polynomial(s, [0.999_998_4, 0.117_982_8, 0.001_740_832_5]);
    let below = polynomial(s, [1.0, 0.451_309_1, 0.018_852_822, 7.206_747e-5]);
    (0.5 * z * above / below) + 0.5
}

/// The inverse of [`squash`].
#[inline(always)]
pub fn unsquash(u: f32) -> f32 {
    // Half of the smallest distance to 0 or 1 that `squash` leaves.
    const EDGE: f32 = 1.5e-4;
    let u = if u < EDGE { EDGE } else { u };
    let u = if u > 1.0 - EDGE { 1.0 - EDGE } else { u };
    0.5 * ln(u / (1.0 - u))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_polynomials_are_good_to_a_millionth() {
        for index in 1..40_000 {
            let x = index as f32 * 1e-3 - 20.0;
            let exact = f64::from(x).exp2();
            assert!((f64::from(exp2(x)) - exact).abs() / exact < 1e-6, "2^{x}");
            let positive = index as f32 * 1e-3;
            let error = f64::from(ln(positive)) - f64::from(positive).ln();
            assert!(error.abs() < 1e-6, "ln {positive}: {error}");
            let z = x * 0.2;
            let exact = 0.5 * (1.0 + f64::from(z).tanh());
            assert!((f64::from(squash(z)) - exact).abs() < 1e-6, "squash {z}");
            if z.abs() < 3.9 {
                assert!((unsquash(squash(z)) - z).abs() < 1e-3, "unsquash {z}");
            }
        }
    }

    #[test]
    fn tables_are_read_at_every_place() {
        let tables: [[f32; TABLE]; 2] =
            [0.5, 100.0].map(|start| std::array::from_fn(|i| start + i as f32));
        let places = std::array::from_fn(|lane| (lane * 5 % 8) as f32);
        let found = look_up([&tables[0], &tables[1]], &places);
        for (lane, place) in places.iter().enumerate() {
            assert_eq!([found[0][lane], found[1][lane]], [0.5 + place, 100.0 + place]);
        }
        let long: Vec<Row> =
            (0..100).map(|index| [0, 1, 2, 3].map(|column| (4 * index + column) as f32)).collect();
        let places = std::array::from_fn(|lane| (lane * 7) as f32);
        let found = rows(&long, &places);
        for lane in 0..LANES {
            for (column, found) in found.iter().enumerate() {
                assert_eq!(found[lane], (4 * (7 * lane).min(99) + column) as f32);
            }
        }
    }

    #[test]
    fn the_normals_have_the_moments_and_the_tails_of_a_normal() {
        let mut bits = Bits::new(Seed::new(3));
        let (mut sums, mut beyond, count) = ([0.0f64; 4], 0, 40_000 * LANES * 2);
        let mut cross = 0.0;
        for _ in 0..40_000 {
            for word in bits.words() {
                let (a, b) = normal_pair(word);
                cross += f64::from(a) * f64::from(b);
                for value in [f64::from(a), f64::from(b)] {
                    for (power, sum) in sums.iter_mut().enumerate() {
                        *sum += value.powi(power as i32 + 1);
                    }
                    beyond += usize::from(value.abs() > 3.0);
                }
            }
        }
        let moment = sums.map(|sum| sum / count as f64);
        for (found, expected) in moment.iter().zip([0.0, 1.0, 0.0, 3.0]) {
            assert!((found - expected).abs() < 0.02, "{moment:?}");
        }
        assert!((cross / count as f64).abs() < 0.005);
        assert!((beyond as f64 / count as f64 - 0.0027).abs() < 2e-4);
    }
}
