//! libFuzzer's entry to the target `fixed_array`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::fixed_array(data));
