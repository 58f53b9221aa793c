// Package command holds pitchpipe's commands.
//
// Input: arguments, environment and streams as values. Output: text for people, JSON with
// --json, and an exit status that `pitchpipe help exit-status` explains. The package never
// decides about a job: it asks the controller.
package command
