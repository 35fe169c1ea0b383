// The data of the pictures: each function runs a limiter on the virtual store and prints what it
// did, as gnuplot reads it: blocks of columns, two empty lines between them.
// Threading: single-threaded.
#pragma once

#include <ostream>

namespace sluice::pictures {

void token_bucket(std::ostream& out);
void sliding_window(std::ostream& out);
void sliding_window_counter(std::ostream& out);
void fixed_window(std::ostream& out);
void shared_token_bucket(std::ostream& out);
void shared_sliding_window(std::ostream& out);
void learned_rate(std::ostream& out);
void prefetch(std::ostream& out);
void leases(std::ostream& out);
void fleet_shedder(std::ostream& out);
void slot_lock(std::ostream& out);
void gates(std::ostream& out);
void utilization(std::ostream& out);

}  // namespace sluice::pictures
