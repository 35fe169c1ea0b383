// A program of nothing but tests/precompiled.hpp, whose compiled form the tests use.
int main() {}
