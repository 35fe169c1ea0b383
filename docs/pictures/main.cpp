// Prints the data of one picture: pictures STEM, such as token_bucket.
#include <array>
#include <iomanip>
#include <iostream>
#include <string_view>
#include <utility>

#include "docs/pictures/pictures.hpp"

int main(int argc, char** argv) {
  using namespace sluice::pictures;
  using Draw = void (*)(std::ostream&);
  constexpr std::array<std::pair<std::string_view, Draw>, 13> all{{
      {"fixed_window", fixed_window},
      {"fleet_shedder", fleet_shedder},
      {"gates", gates},
      {"learned_rate", learned_rate},
      {"prefetch", prefetch},
      {"leases", leases},
      {"shared_token_bucket", shared_token_bucket},
      {"shared_sliding_window", shared_sliding_window},
      {"sliding_window_counter", sliding_window_counter},
      {"sliding_window", sliding_window},
      {"slot_lock", slot_lock},
      {"token_bucket", token_bucket},
      {"utilization", utilization},
  }};
  for (const auto& [stem, draw] : all) {
    if (argc != 2 || stem != argv[1]) continue;
    std::cout << std::setprecision(6);
    draw(std::cout);
    return std::cout ? 0 : 1;
  }
  std::cerr << "pictures STEM, one of:";
  for (const auto& [stem, draw] : all) std::cerr << ' ' << stem;
  std::cerr << '\n';
  return 2;
}
