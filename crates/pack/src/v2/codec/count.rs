//! The three kinds of elements a cube of counts has.

use std::fmt::Debug;

/// An element of a cube of counts: `u8`, `u16` or `u32`.
pub trait Count: sealed::Sealed + Copy + Default + Eq + Ord + Debug + Send + Sync + bytemuck::Pod {
    /// Bytes of one count.
    const BYTES: usize;

    /// The count in 32 bits.
    fn widen(self) -> u32;

    /// The low bits of a count that was checked against [`MOST`](Self::MOST).
    fn narrow(value: u32) -> Self;

    /// The largest count of this kind.
    const MOST: u32;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u8 {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
}

macro_rules! count {
    ($($t:ty),*) => { $(
        impl Count for $t {
            const BYTES: usize = size_of::<$t>();
            const MOST: u32 = <$t>::MAX as u32;

            #[inline(always)]
            fn widen(self) -> u32 {
                u32::from(self)
            }

            #[inline(always)]
            fn narrow(value: u32) -> Self {
                value as $t
            }
        }
    )* };
}

count!(u8, u16, u32);
