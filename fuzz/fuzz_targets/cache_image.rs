//! libFuzzer's entry to the target `cache_image`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::cache_image(data));
