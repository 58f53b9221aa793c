// Package spawn has a child process do each bit of its work, as shell scripts and build
// tools do.
//
// In come an input number and a seed that make short texts; out comes, per epoch of many
// texts handed to cksum, one process each, the share of the checksums that are wrong (as
// loss) and right (as acc). Most of the time goes into making processes and waiting for
// them. It never runs anything but cksum, and needs it on the PATH.
package spawn
