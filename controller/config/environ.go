package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pitchpipe/driver/jobfile/nearest"
)

// prefix starts the name of every environment variable that is read.
const prefix = "PITCHPIPE_"

// vars is an environment as a value.
type vars map[string]string

func environment(environ []string) vars {
	out := vars{}
	for _, line := range environ {
		if name, value, ok := strings.Cut(line, "="); ok {
			out[name] = value
		}
	}
	return out
}

// texts returns what the variables say, by key.
func (e vars) texts() map[string]string {
	out := map[string]string{}
	for _, k := range keys() {
		if text, ok := e[k.variable()]; ok {
			out[k.name] = text
		}
	}
	return out
}

// misspelt lists the variables that are nearly a known one. Other variables with
// the prefix are left alone, since jobs carry some that are not ours, such as
// PITCHPIPE_SETTINGS.
func (e vars) misspelt() Errors {
	var known []string
	for _, k := range keys() {
		known = append(known, strings.TrimPrefix(k.variable(), prefix))
	}
	var faults Errors
	for _, name := range slices.Sorted(maps.Keys(e)) {
		own, ok := strings.CutPrefix(name, prefix)
		if !ok || slices.Contains(known, own) {
			continue
		}
		if near := nearest.Word(own, known); near != "" {
			faults = append(faults, Error{Where: name, Found: "unknown variable", Want: fmt.Sprintf("did you mean %q?", prefix+near)})
		}
	}
	return faults
}

// surroundings is what the defaults depend on.
type surroundings struct {
	root bool
	env  vars
}

func (m surroundings) runtimeDir() string {
	if m.root {
		return "/run/pitchpipe"
	}
	if dir := m.env["XDG_RUNTIME_DIR"]; filepath.IsAbs(dir) {
		return filepath.Join(dir, "pitchpipe")
	}
	// Not the directory for temporary files, where anybody could be there first.
	return m.stateDir()
}

func (m surroundings) stateDir() string {
	if m.root {
		return "/var/lib/pitchpipe"
	}
	if dir := m.env["XDG_STATE_HOME"]; filepath.IsAbs(dir) {
		return filepath.Join(dir, "pitchpipe")
	}
	return filepath.Join(m.env["HOME"], ".local", "state", "pitchpipe")
}

func (surroundings) existing(path string) string {
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return ""
	}
	return path
}

// File returns the configuration file to read when none was named on the command
// line: the one that PITCHPIPE_CONFIG names, else the user's own, else the
// machine's, else none, which is the empty string.
func File(environ []string) string {
	env := environment(environ)
	if path, ok := env[prefix+"CONFIG"]; ok {
		return path
	}
	dir := env["XDG_CONFIG_HOME"]
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(env["HOME"], ".config")
	}
	own := filepath.Join(dir, "pitchpipe", "controller.yaml")
	if !filepath.IsAbs(own) {
		own = ""
	}
	for _, path := range []string{own, "/etc/pitchpipe/controller.yaml"} {
		if path != "" && (surroundings{}).existing(path) != "" {
			return path
		}
	}
	return ""
}
