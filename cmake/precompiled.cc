// The source of the libraries that exist for their precompiled headers: gxp_precompiled() in CompilerSettings.cmake.
