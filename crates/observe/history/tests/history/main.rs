//! The file from outside: what is kept, packed, thinned, listed and read between.

mod captures;
mod clock;
mod damage;
mod damaged;
mod defects_of_others;
mod foreign;
mod full_disk;
mod guide;
mod hostile;
mod interrupted;
mod judged;
mod life;
mod packing;
mod processes;
mod results;
mod retention;
mod series;
