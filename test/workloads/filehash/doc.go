// Package filehash reads a file that it made itself, again and again, and hashes it.
//
// In come an input number, a seed and a directory to put the file in; out come,
// per epoch of many passes, the share of blocks whose checksum is not the one
// that they were written with (as loss) and of those that are right (as acc). A
// part of every pass is read from the device, the rest from the page cache. The
// file has no name, so that nothing is left behind however the program ends.
package filehash
