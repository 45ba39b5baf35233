//! The methods with a type in their name, as petektools has them, thin over the generic ones.

use crate::slab_mut::SlabMut;
use crate::store::Store;
use crate::writer::StoreWriter;
use tensilo_core::Result;

macro_rules! named {
    ($($t:ty: $slab:ident $window:ident $lane:ident $flat:ident $write_slab:ident $slab_mut:ident $write_flat:ident
       $flat_mut:ident $slab_view:ident $window_view:ident;)+) => {
        /// Reading under names that say the element type. All fail as the methods of [`Lane`](crate::Lane) do.
        impl Store {$(
            #[doc = concat!("Slab `k` of a lane of `", stringify!($t), "`.")]
            ///
            /// # Errors
            /// `NotFound`, `InvalidArgument`, `Corrupt`.
            pub fn $slab(&self, name: &str, k: u64) -> Result<&[$t]> {
                self.view::<$t>(name)?.slab(k)
            }

            #[doc = concat!("Slabs `start..end` of a lane of `", stringify!($t), "`.")]
            ///
            /// # Errors
            /// `NotFound`, `InvalidArgument`, `Corrupt`.
            pub fn $window(&self, name: &str, start: u64, end: u64) -> Result<&[$t]> {
                self.view::<$t>(name)?.window(start, end)
            }

            #[doc = concat!("A whole lane of `", stringify!($t), "`.")]
            ///
            /// # Errors
            /// `NotFound`, `InvalidArgument`, `Corrupt`.
            pub fn $lane(&self, name: &str) -> Result<&[$t]> {
                self.view::<$t>(name)?.all()
            }

            #[doc = concat!("A flat lane of `", stringify!($t), "`.")]
            ///
            /// # Errors
            /// `NotFound`, `InvalidArgument`, `Corrupt`.
            pub fn $flat(&self, name: &str) -> Result<&[$t]> {
                self.view::<$t>(name)?.flat()
            }

            #[doc = concat!("Slab `k` of a lane of `", stringify!($t), "` as an array of one dimension.")]
            ///
            /// # Errors
            /// `NotFound`, `InvalidArgument`, `Corrupt`.
            #[cfg(feature = "ndarray")]
            pub fn $slab_view(&self, name: &str, k: u64) -> Result<ndarray::ArrayView1<'_, $t>> {
                self.$slab(name, k).map(Into::into)
            }

            #[doc = concat!("Slabs `start..end` of a lane of `", stringify!($t), "` as an array `[slabs, elems]`.")]
            ///
            /// # Errors
            /// `NotFound`, `InvalidArgument`, `Corrupt`.
            #[cfg(feature = "ndarray")]
            pub fn $window_view(&self, name: &str, start: u64, end: u64) -> Result<ndarray::ArrayView2<'_, $t>> {
                let values = self.$window(name, start, end)?;
                crate::views::window(values, start, end)
            }
        )+}

        /// Writing under names that say the element type.
        impl StoreWriter {$(
            #[doc = concat!("Writes slab `k` of a lane of `", stringify!($t), "`.")]
            ///
            /// # Errors
            /// As [`write_slab`](Self::write_slab).
            pub fn $write_slab(&self, name: &str, k: u64, data: &[$t]) -> Result<()> {
                self.write_slab(name, k, data)
            }

            #[doc = concat!("Lends slab `k` of a lane of `", stringify!($t), "`.")]
            ///
            /// # Errors
            /// As [`slab_mut`](Self::slab_mut).
            pub fn $slab_mut(&self, name: &str, k: u64) -> Result<SlabMut<'_, $t>> {
                self.slab_mut(name, k)
            }

            #[doc = concat!("Writes a flat lane of `", stringify!($t), "`.")]
            ///
            /// # Errors
            /// As [`write_flat`](Self::write_flat).
            pub fn $write_flat(&self, name: &str, data: &[$t]) -> Result<()> {
                self.write_flat(name, data)
            }

            #[doc = concat!("Lends a flat lane of `", stringify!($t), "`.")]
            ///
            /// # Errors
            /// As [`flat_mut`](Self::flat_mut).
            pub fn $flat_mut(&self, name: &str) -> Result<SlabMut<'_, $t>> {
                self.flat_mut(name)
            }
        )+}
    };
}

named! {
    f32: slab_f32 window_f32 lane_f32 flat_f32 write_slab_f32 slab_mut_f32 write_flat_f32 flat_mut_f32 slab_view_f32 window_view_f32;
    f64: slab_f64 window_f64 lane_f64 flat_f64 write_slab_f64 slab_mut_f64 write_flat_f64 flat_mut_f64 slab_view_f64 window_view_f64;
    u32: slab_u32 window_u32 lane_u32 flat_u32 write_slab_u32 slab_mut_u32 write_flat_u32 flat_mut_u32 slab_view_u32 window_view_u32;
    u16: slab_u16 window_u16 lane_u16 flat_u16 write_slab_u16 slab_mut_u16 write_flat_u16 flat_mut_u16 slab_view_u16 window_view_u16;
}
