package config

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"pitchpipe/controller/tuning"
)

// Config is what the controller runs under. Load fills in every field.
type Config struct {
	Socket   string        // path of the controller's Unix socket
	State    string        // directory of the durable state
	Driver   string        // the scheduler, such as local
	Listen   string        // TCP address of /metrics; empty = none
	Exporter Exporter      // how the exporters are reached
	Local    Local         // the embedded scheduler
	Slurm    Slurm         // a Slurm cluster
	Broker   Broker        // what acts for the controller of a Slurm site
	Nomad    Nomad         // a Nomad cluster
	Store    Store         // where several controllers share their state
	Log      Log           // what is logged and how
	Resync   time.Duration // how often every job is looked at without an event
	Site     string        // file of the site's policy; empty = there is none

	// Given says where each setting was given, by key: file:line:column, a variable or
	// a flag. A key that is not in it has its default.
	Given map[string]string
}

// Local bounds the embedded scheduler.
type Local struct {
	Cluster string       // the name that its jobs are known under
	Cores   int          // cores it may give to jobs; 0 = all of the machine
	Memory  tuning.Bytes // memory it may give to jobs; 0 = all of the machine
	Dir     string       // directory of its jobs
}

// Slurm is how a Slurm cluster is reached.
type Slurm struct {
	Mode       string        // owner: the jobs of this process's user; site: those of everybody, through the broker
	Broker     string        // path of the broker's Unix socket
	Plugin     bool          // the site runs the shipped submission plugin, so that only jobs that it marked are seen
	Dir        string        // directory of the journal of its jobs
	Bin        string        // directory of Slurm's commands; empty = found by PATH
	Conf       string        // slurm.conf; empty = SLURM_CONF, or the site's
	Interval   time.Duration // how often squeue is asked
	Wake       string        // file that the site's hooks touch; empty = none
	Rest       string        // socket of a slurmrestd; empty = none
	Partitions []string      // whose jobs are seen; none = all
	TaskProlog bool          // the site runs the shipped TaskProlog
	Settings   string        // directory of the files that the TaskProlog reads
}

// Log is what is logged and how.
type Log struct {
	Level  slog.Level // lower levels are left out
	Format string     // text or json
}

// Flags defines one flag for each key, under the key's own name, so that
// "local.cores" is written --local.cores. The defaults shown are texts for
// reading: a flag counts only when it was given.
func Flags(flags *pflag.FlagSet) {
	for _, k := range keys() {
		flags.String(k.name, "", k.doc+" (default: "+k.shown()+")")
		flags.Lookup(k.name).DefValue = "" // pflag would print it a second time
	}
}

// Load reads the controller's settings. Flags are those that Flags defined, or
// nil; environ has the form of os.Environ; path is the file, and empty means that
// there is none. A file that is named and missing is an error. Faults come back as
// Errors, all of them at once.
func Load(flags *pflag.FlagSet, environ []string, path string) (Config, error) {
	return load(flags, environ, path, os.Geteuid())
}

func load(flags *pflag.FlagSet, environ []string, path string, euid int) (Config, error) {
	env := environment(environ)
	machine := surroundings{root: euid == 0, env: env}

	// 1. The file, which viper gets as a tree of texts with known keys only.
	var faults Errors
	tree := scalars{}
	if path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return Config{}, fmt.Errorf("read the configuration: %w", err)
		}
		tree, faults = parseFile(path, data)
	}

	// 2. The layers.
	v := viper.New()
	origin := map[string]string{}
	places := map[string]place{}
	for _, k := range keys() {
		v.SetDefault(k.name, "")
		if s, ok := tree[k.name]; ok {
			origin[k.name], places[k.name] = s.pos.String(), s.pos
		}
	}
	for _, layer := range []map[string]string{tree.texts(), env.texts()} {
		if err := v.MergeConfigMap(nest(layer)); err != nil {
			return Config{}, fmt.Errorf("merge the configuration: %w", err)
		}
	}
	faults = append(faults, env.misspelt()...)
	for _, k := range keys() {
		if _, ok := env[k.variable()]; ok {
			origin[k.name], places[k.name] = k.variable(), place{}
		}
		if flags == nil {
			continue
		}
		if f := flags.Lookup(k.name); f != nil && f.Changed {
			if err := v.BindPFlag(k.name, f); err != nil {
				return Config{}, fmt.Errorf("bind --%s: %w", k.name, err)
			}
			origin[k.name], places[k.name] = "--"+k.name, place{}
		}
	}

	// 3. Each value is read by its key; what was not given takes its default.
	var c Config
	for _, k := range keys() {
		from, given := origin[k.name]
		if !given {
			continue
		}
		if err := k.set(&c, v.GetString(k.name)); err != nil {
			faults = append(faults, Error{Where: from, Key: k.name, Found: fmt.Sprintf("found %q", v.GetString(k.name)), Want: wanted(err), at: places[k.name]})
		}
	}
	if len(faults) > 0 {
		return Config{}, faults.sorted()
	}
	c.Given = origin
	for _, k := range keys() {
		if _, given := origin[k.name]; given {
			continue
		}
		if text := k.fallback(machine, c); text != "" {
			if err := k.set(&c, text); err != nil {
				return Config{}, Errors{{Where: "default", Key: k.name, Found: fmt.Sprintf("found %q", text), Want: err.Error()}}
			}
		}
	}
	return c, nil
}
