//! Format 2: any detector, any scan, any count.

mod damage;
mod products;
mod properties;
mod publishing;
mod sources;
mod stacks;
