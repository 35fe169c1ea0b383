// Where seeds come from, and how a run is repeated.
#include "tests/support/seed.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

namespace sluice::test {
namespace {

std::uint64_t hash(const std::string& text) {
  std::uint64_t value = 0xcbf29ce484222325;  // FNV-1a: tests of one run draw differently
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return value;
}

std::uint64_t choose_seed() {
  const char* text = std::getenv("SLUICE_SEED");
  if (text == nullptr || *text == '\0') return SystemRng{}.next();
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text, &end, 0);
  if (*end != '\0')
    throw std::invalid_argument("SLUICE_SEED is not a number: " + std::string(text));
  return value;
}

double choose_scale() {
  const char* text = std::getenv("SLUICE_TEST_SCALE");
  if (text == nullptr || *text == '\0') return 1.0;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (*end != '\0' || !(value > 0) || value > 1e6) {
    throw std::invalid_argument("SLUICE_TEST_SCALE must be above 0, got " + std::string(text));
  }
  return value;
}

std::string program() {
  std::string path(4096, '\0');
  std::FILE* file = std::fopen("/proc/self/cmdline", "rb");
  if (file == nullptr) return "test";
  path.resize(std::fread(path.data(), 1, path.size(), file));
  std::fclose(file);
  return path.substr(0, path.find('\0'));
}

/// As Catch2 takes it on a command line: a comma would end the name.
std::string escaped(const std::string& test_name) {
  std::string text;
  for (const char c : test_name) {
    if (c == ',') text += '\\';
    text += c;
  }
  return text;
}

}  // namespace

std::uint64_t seed() {
  static const std::uint64_t value = choose_seed();
  return value;
}

std::size_t scaled(std::size_t count, std::size_t least) {
  static const double scale = choose_scale();
  return std::max(least, static_cast<std::size_t>(static_cast<double>(count) * scale));
}

std::string repeat_line(const std::string& test_name) {
  const char* scale = std::getenv("SLUICE_TEST_SCALE");
  return "SLUICE_SEED=" + std::to_string(seed()) +
         (scale == nullptr ? "" : " SLUICE_TEST_SCALE=" + std::string(scale)) + " " + program() +
         " \"" + escaped(test_name) + "\"";
}

Random::Random(std::string test_name)
    : repeat_(repeat_line(test_name)),
      rng_(seed() ^ hash(test_name)),
      exceptions_(std::uncaught_exceptions()) {}

Random::~Random() {
  if (std::uncaught_exceptions() > exceptions_) {
    std::fprintf(stderr, "to repeat: %s\n", repeat_.c_str());
  }
}

std::int64_t Random::between(std::int64_t low, std::int64_t high) {
  const auto range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const std::uint64_t draw = range == UINT64_MAX ? next() : below(range + 1);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + draw);
}

}  // namespace sluice::test
