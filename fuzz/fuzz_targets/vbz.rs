//! libFuzzer's entry to the target `vbz`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::vbz(data));
