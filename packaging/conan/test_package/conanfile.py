import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class Consumer(ConanFile):
    """Builds and runs tests/consumer."""
    settings = "os", "compiler", "build_type", "arch"
    generators = "CMakeDeps", "CMakeToolchain", "PkgConfigDeps", "VirtualRunEnv"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        options = self.dependencies["sluice"].options
        components = [name for name in ("asio", "redis", "sim", "timezone") if options.get_safe(name)]
        if "asio" in components and "sim" in components:
            components.append("world")
        cmake = CMake(self)
        cmake.configure({"COMPONENTS": ",".join(components)},
                        os.path.join(self.recipe_folder, "../../../tests/consumer"))
        cmake.build()

    def test(self):
        if can_run(self):
            self.run(os.path.join(self.cpp.build.bindir, "consumer"), env="conanrun")
