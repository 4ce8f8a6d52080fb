// Package release builds the files that a release publishes: the program for each architecture as an archive and as a
// Debian package, the Helm chart, lists of components, checksums and the changelog of the version.
//
// Two builds of one commit by one version of Go and dpkg-deb have the same bytes: files in archives are sorted by name
// and have no owner, all times are the time of the commit, and the program contains no path of the machine.
package release
