//! libFuzzer's entry to the target `hdf5`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::hdf5(data));
