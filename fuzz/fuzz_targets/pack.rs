//! libFuzzer's entry to the target `pack`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::pack(data));
