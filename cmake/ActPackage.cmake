# What is installed beside the programs, and the packages that CPack makes of it all: scripts/package.
install(DIRECTORY aux_data/ DESTINATION ${CMAKE_INSTALL_DATADIR}/act/examples)
# Examples name their schemas as ../../config/..., here and there.
install(DIRECTORY config DESTINATION ${CMAKE_INSTALL_DATADIR}/act)
# What scripts/contents says of the libraries inside, where it was asked.
install(DIRECTORY ${CMAKE_BINARY_DIR}/contents/ DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
install(FILES CHANGELOG.md LICENSE README.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

# 'act' is another tool in Debian and Fedora.
set(CPACK_PACKAGE_NAME act-cluster)
set(CPACK_PACKAGE_VENDOR "The ACT authors")
set(CPACK_PACKAGE_CONTACT "The ACT authors <act@localhost>")
set(CPACK_PACKAGE_DESCRIPTION "Packs the code of a project, uploads it and runs a command with it by mpirun, on this machine, on
Slurm or on Azure Machine Learning; shows state and logs, and moves data.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB RPM)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates, openmpi-bin")

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
set(CPACK_RPM_PACKAGE_AUTOREQPROV OFF)
set(CPACK_RPM_COMPRESSION_TYPE gzip) # what the oldest rpm reads
if(CMAKE_CROSSCOMPILING) # else CPack asks dpkg and uname
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64) # Debian's name of the one in cmake/
  set(CPACK_RPM_PACKAGE_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR})
endif()
# The same files give the same package. CPack knows no Recommends, and this is where tags may stand, too.
set(CPACK_RPM_SPEC_MORE_DEFINE "%define use_source_date_epoch_as_buildtime 1
%define clamp_mtime_to_source_date_epoch 1
%define _buildhost act
%define _build_id_links none
%define __os_install_post %{nil}
Recommends: ca-certificates, openmpi")
# Folders of everybody, which no package owns.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /usr/share/man /usr/share/man/man1 /usr/share/man/man5
    /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/zsh
    /usr/share/zsh/site-functions /usr/share/fish /usr/share/fish/vendor_completions.d)
include(CPack)
