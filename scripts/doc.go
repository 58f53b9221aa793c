// Package scripts holds what administrators run and install.
//
// Input: nothing. Output: the files that a Slurm cluster is given, as this version
// has them, so that a program can compare those that a cluster has. The package never
// writes them anywhere.
package scripts
