//! Rust types that stand for elements of datasets and attributes.

use crate::format::datatype::Datatype;

/// A number that is written as it lies in memory.
///
/// ```
/// use tensilo_hdf5::write::Element;
/// assert_eq!(f32::datatype().size, 4);
/// ```
pub trait Element: bytemuck::NoUninit {
    /// The datatype of the bytes in memory.
    fn datatype() -> Datatype;
}

macro_rules! integers {
    ($($t:ty: $signed:expr),*) => {$(
        impl Element for $t {
            fn datatype() -> Datatype {
                Datatype::native_integer(size_of::<$t>() as u8, $signed)
            }
        }
    )*};
}

integers!(u8: false, u16: false, u32: false, u64: false, i8: true, i16: true, i32: true, i64: true);

impl Element for f32 {
    fn datatype() -> Datatype {
        Datatype::native_float32()
    }
}

impl Element for f64 {
    fn datatype() -> Datatype {
        Datatype::native_float64()
    }
}

impl Element for half::f16 {
    fn datatype() -> Datatype {
        Datatype::native_float16()
    }
}

impl Element for bool {
    fn datatype() -> Datatype {
        Datatype::boolean()
    }
}
