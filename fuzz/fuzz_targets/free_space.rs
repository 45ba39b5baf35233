//! libFuzzer's entry to the target `free_space`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::free_space(data));
