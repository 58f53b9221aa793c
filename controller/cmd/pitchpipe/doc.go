// Command pitchpipe is the one binary for users and administrators: it runs the
// controller, submits and explains jobs, and reports progress from inside them.
// main only wires; the commands are in package command.
package main
