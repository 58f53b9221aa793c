// Package command holds pitchpipe's commands.
//
// In go arguments, environment and streams as values. Out come text for people, JSON with
// --json, and an exit status that `pitchpipe help exit-status` explains. The package never
// decides about a job: it asks the controller.
package command
