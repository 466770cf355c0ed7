# Installation and the package that find_package(zyfa CONFIG) finds: zyfa::zyfa (public headers and libzyfa), libzyfa_jit
# beside it, which libzyfa opens at run time, and the zyfa-jit command. Also what both shared objects export.
include(CMakePackageConfigHelpers)

foreach(library zyfa zyfa_jit)
  if(TARGET ${library})
    target_link_options(${library} PRIVATE "LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/zyfa.map")
    set_property(TARGET ${library} APPEND PROPERTY LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/zyfa.map)
  endif()
endforeach()

if(TARGET zyfa)
  set_target_properties(zyfa PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_include_directories(zyfa INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS zyfa zyfa_options EXPORT zyfaTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/include/zyfa DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/zyfa)
  install(EXPORT zyfaTargets NAMESPACE zyfa:: DESTINATION ${package_dir})
  configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/zyfaConfig.cmake.in ${PROJECT_BINARY_DIR}/zyfaConfig.cmake
    INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/zyfaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/zyfaConfig.cmake ${PROJECT_BINARY_DIR}/zyfaConfigVersion.cmake DESTINATION ${package_dir})
endif()

# Not exported: nothing may link libzyfa_jit, it is opened lazily with RTLD_LOCAL.
if(TARGET zyfa_jit)
  install(TARGETS zyfa_jit LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

if(TARGET zyfa-jit)
  file(RELATIVE_PATH lib_from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(zyfa-jit PROPERTIES INSTALL_RPATH "$ORIGIN/${lib_from_bin}")
  install(TARGETS zyfa-jit RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
