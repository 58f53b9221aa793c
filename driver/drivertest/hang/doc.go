// Package hang gives tests a file system that does not answer, as a lost NFS server's.
//
// Its input is a test; what it returns is a directory in which every look at a file hangs
// until the test ends. It skips the test where this process may not mount.
package hang
