//! libFuzzer's entry to the target `fractal_heap`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::fractal_heap(data));
