# A recipe of Conan 2 for the checkout that it lies in:
#
#   conan create packaging/conan --build=missing
#
# Run: Conan 2.9 exported the recipe, took Boost, hiredis, OpenSSL and date from Debian 12 ([platform_requires] of the
# profile), configured it with all options and compiled 244 of 281 files; then the run was ended. Not run: package(),
# test_package, and the packages of ConanCenter.
import os

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain
from conan.tools.files import copy, load
from conan.tools.gnu import PkgConfigDeps


class Sluice(ConanFile):
    name = "sluice"
    description = "Rate limiting for a thread, a process or a fleet"
    license = "MIT"
    package_type = "library"
    settings = "os", "compiler", "build_type", "arch"
    options = {name: [True, False] for name in ("shared", "fPIC", "asio", "redis", "sim", "timezone")}
    default_options = {"shared": False, "fPIC": True, "asio": True, "redis": True, "sim": True, "timezone": True}
    implements = ["auto_shared_fpic"]

    @property
    def _checkout(self):
        return os.path.join(self.recipe_folder, os.pardir, os.pardir)

    def set_version(self):
        header = load(self, os.path.join(self._checkout, "include/sluice/version.hpp"))
        self.version = header.split("SLUICE_VERSION_STRING")[1].split('"')[1]

    def export_sources(self):
        for name in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "backends/*", "sim/*", "timezone/*"):
            copy(self, name, self._checkout, self.export_sources_folder, excludes="sim/report/node_modules/*")

    def validate(self):
        check_min_cppstd(self, 20)

    def requirements(self):
        if self.options.asio or self.options.redis:
            self.requires("boost/[>=1.81 <2]", transitive_headers=True, options={"header_only": True})
        if self.options.redis:
            self.requires("hiredis/[>=0.14 <2]")
            self.requires("openssl/[>=1.1.1 <4]")
        if self.options.timezone:
            self.requires("date/[>=3.0 <4]")

    def generate(self):
        toolchain = CMakeToolchain(self)
        for name in ("asio", "redis", "sim", "timezone"):
            toolchain.cache_variables[f"SLUICE_{name.upper()}"] = bool(self.options.get_safe(name))
        for name in ("CONFIG", "TESTS", "EXAMPLES", "BENCH", "TOOLS"):  # toml++ is not required here
            toolchain.cache_variables[f"SLUICE_{name}"] = False
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # Its own sluice-config.cmake; for hiredis, that asks pkg-config.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/sluice"]
