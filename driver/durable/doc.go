// Package durable writes small files that are there after a crash, whole or not at all.
//
// Input: values and paths. Output: files that survive the loss of the process and of the machine once
// the call returned. It never leaves a half-written file under its final name, and keeps
// nothing open but a Lock.
package durable
