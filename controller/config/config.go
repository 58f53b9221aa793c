package config

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
)

// Config holds the settings. A field is named after its key, which Keys explains.
type Config struct {
	Socket, State, Driver, Listen, Site string
	Resync                              time.Duration
	JobLabels                           bool

	Local    Local
	Exporter Exporter
	Slurm    Slurm
	Broker   Broker
	Nomad    Nomad
	Store    Store
	Log      Log

	// Given maps a key to the place where it was set: file:line:column, a variable, or a
	// flag. A key that is not in it has its default.
	Given map[string]string `mapstructure:"-"`
	// Texts are the values of all keys as they are written.
	Texts map[string]string `mapstructure:"-"`
}

// Local is the embedded scheduler.
type Local struct {
	Cluster, Dir string
	Cores        int
	Memory       tuning.Bytes
}

// Exporter is how the controller reaches the exporters.
type Exporter struct{ Socket, Nodes, Cert, Key, CA, Discovery, Service string }

// Slurm is a Slurm cluster.
type Slurm struct {
	Mode, Broker, Dir, Bin, Conf, Wake, Settings string

	Plugin, TaskProlog bool
	Interval           time.Duration
	Partitions         []string
}

// Broker is what acts for the controller of a Slurm site.
type Broker struct {
	Socket, Dir, Accept string
	Controller, Above   []string
	Advice              []string
	Raise               time.Duration
	Restarts            int
}

// Nomad is a Nomad cluster. What is empty comes from Nomad's own variables.
type Nomad struct {
	Address, TokenFile, CA, Cert, Key, Dir string

	Namespaces []string
	People     []Person
	Resync     time.Duration
}

// Person is a user of this machine who counts as an owner of the jobs of a namespace: Nomad
// knows no owner of a job. The name * means every user.
type Person struct{ Namespace, Name string }

// UnmarshalText reads NAMESPACE=USER.
func (p *Person) UnmarshalText(text []byte) error {
	p.Namespace, p.Name, _ = strings.Cut(string(text), "=")
	return nil
}

// Store is where several controllers share their state.
type Store struct {
	Kind, Path, Prefix, Address, Namespace, TokenFile string

	TTL, Delay time.Duration
}

// Log is what the log holds, and its form.
type Log struct {
	Level  slog.Level
	Format string
}

// Flags defines one flag for each key, under the key's own name.
func Flags(flags *pflag.FlagSet) {
	for _, k := range Keys() {
		flags.String(k.Name, "", fmt.Sprintf("%s (default: %s)", k.Help, k.shown()))
		flags.Lookup(k.Name).DefValue = "" // the help has it already
	}
}

// Load reads the settings. Flags are those that Flags defined, or nil; environ has the form of
// os.Environ; an empty path means no file. Faults are returned as Errors, all at once.
func Load(flags *pflag.FlagSet, environ []string, path string) (Config, error) {
	return load(flags, environ, path, os.Geteuid())
}

func load(flags *pflag.FlagSet, environ []string, path string, euid int) (Config, error) {
	env := environment(environ)
	d, file := document{file: path}, map[string]scalar{}
	if path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return Config{}, fmt.Errorf("read the configuration: %w", err)
		}
		d.flatten("", "", d.parse(data), types(Keys()), file)
	}
	d.misspelt(env)
	c := Config{Given: map[string]string{}, Texts: map[string]string{}}
	values, dirs := map[string]any{}, directories(env, euid)
	for _, k := range Keys() {
		v, given := file[k.Name]
		switch text, set := env[k.variable()]; {
		case flags != nil && flags.Changed(k.Name):
			v, given = scalar{text: flags.Lookup(k.Name).Value.String(), pos: jobfile.Pos{Filename: "--" + k.Name}}, true
			if k.Type.path && v.text != "" {
				v.text, _ = filepath.Abs(v.text) // it fails without a working directory, and then the value is not a path
			}
		case set:
			v, given = scalar{text: text, pos: jobfile.Pos{Filename: k.variable()}}, true
		case !given:
			v = scalar{text: dirs.Replace(k.Default), pos: jobfile.Pos{Filename: "default"}}
		}
		if k.Type.path && v.text != "" {
			v.text = filepath.Clean(v.text)
		}
		if given {
			c.Given[k.Name] = v.pos.String()
		}
		v, _ = d.read(k.Name, v.text, v.pos, k.Type)
		values[k.Name], c.Texts[k.Name] = v.value, v.text
		if k.Name == "state" { // the defaults below it are in it
			dirs = strings.NewReplacer("{state}", v.text, "{site}", existing(sitePlace))
		}
	}
	if len(d.faults) > 0 {
		return Config{}, joined(d.faults)
	}
	decode(&c, values)
	return c, nil
}

// The directories of a site.
const (
	siteDir   = "/etc/pitchpipe"
	sitePlace = siteDir + "/site.yaml"
)

// directories replaces {run} and {home} in a default. Without a session's directory a user's
// socket is below his home, never in the directory for temporary files, where another user
// could be there first.
func directories(env map[string]string, euid int) *strings.Replacer {
	if euid == 0 {
		return strings.NewReplacer("{run}", "/run/pitchpipe", "{home}", "/var/lib/pitchpipe")
	}
	home := xdg(env, "XDG_STATE_HOME", filepath.Join(env["HOME"], ".local", "state", "pitchpipe"))
	return strings.NewReplacer("{run}", xdg(env, "XDG_RUNTIME_DIR", home), "{home}", home)
}

// xdg is the folder of Pitchpipe in the one that a variable names, else the given one.
func xdg(env map[string]string, variable, other string) string {
	if dir := env[variable]; filepath.IsAbs(dir) {
		return filepath.Join(dir, "pitchpipe")
	}
	return other
}

func environment(environ []string) map[string]string {
	out := map[string]string{}
	for _, line := range environ {
		if name, value, ok := strings.Cut(line, "="); ok {
			out[name] = value
		}
	}
	return out
}

// misspelt finds the variables that are nearly a known one. Others with the prefix stay, since
// jobs carry their own, such as PITCHPIPE_SETTINGS.
func (d *document) misspelt(env map[string]string) {
	known := tuning.Each(Keys(), func(k Key) string { return strings.TrimPrefix(k.variable(), prefix) })
	for _, name := range slices.Sorted(maps.Keys(env)) {
		own, ours := strings.CutPrefix(name, prefix)
		if near := jobfile.Nearest(own, known); ours && near != "" && !slices.Contains(known, own) {
			d.fault(jobfile.Pos{Filename: name}, "", "unknown variable", fmt.Sprintf("did you mean %q?", prefix+near))
		}
	}
}

// File returns the configuration file to read where the command line names none: that of
// PITCHPIPE_CONFIG, else the first of the user's own, those that are named, and the machine's
// that exists; empty = none.
func File(environ []string, names ...string) string {
	env := environment(environ)
	if path, ok := env[prefix+"CONFIG"]; ok {
		return path
	}
	own := xdg(env, "XDG_CONFIG_HOME", filepath.Join(env["HOME"], ".config", "pitchpipe"))
	paths := append(names, filepath.Join(own, "controller.yaml"), siteDir+"/controller.yaml")
	for _, path := range paths {
		if filepath.IsAbs(path) && existing(path) != "" {
			return path
		}
	}
	return ""
}

func existing(path string) string {
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return ""
	}
	return path
}

// strict makes the decoder refuse unknown keys.
func strict(dc *mapstructure.DecoderConfig) {
	dc.ErrorUnused, dc.ZeroFields = true, true
	dc.DecodeHook = mapstructure.ComposeDecodeHookFunc(mapstructure.StringToWeakSliceHookFunc(","), mapstructure.TextUnmarshallerHookFunc())
	dc.MatchName = func(key, field string) bool { // the key task_prolog is the field TaskProlog
		return strings.EqualFold(strings.ReplaceAll(key, "_", ""), field)
	}
}
