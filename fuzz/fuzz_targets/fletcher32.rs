//! libFuzzer's entry to the target `fletcher32`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::fletcher32(data));
