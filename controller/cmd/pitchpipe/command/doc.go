// Package command holds pitchpipe's commands, one file each.
//
// In come arguments, environment and streams as values; out go text for people,
// JSON for programs with --json, and an exit status whose meanings are listed in
// the help. The package decides nothing about jobs: it asks the controller.
package command
