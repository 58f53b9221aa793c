package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
)

// slurmKeys are the settings of the driver for Slurm.
func slurmKeys() []key {
	return []key{
		{
			name: "slurm.mode", want: "want owner or site",
			fallback: func(surroundings, Config) string { return "owner" },
			doc:      "whose jobs are tuned: those of the user who runs the controller (owner), or everybody's, through the broker (site)",
			set: func(c *Config, s string) error {
				if s != "owner" && s != "site" {
					return errors.New("want owner or site")
				}
				c.Slurm.Mode = s
				return nil
			},
		},
		{
			name: "slurm.broker", want: "want an absolute path",
			fallback: func(surroundings, Config) string { return "/run/pitchpipe-broker/broker.sock" },
			doc:      "socket of the broker, which acts for the controller of a site",
			set:      func(c *Config, s string) error { return setPath(&c.Slurm.Broker, s) },
		},
		{
			name: "slurm.plugin", want: "want true or false",
			fallback: func(surroundings, Config) string { return "false" },
			doc:      "the site runs the shipped submission plugin, so that only jobs that it marked are seen; the scripts of others are not read",
			set: func(c *Config, s string) (err error) {
				c.Slurm.Plugin, err = strconv.ParseBool(s)
				return err
			},
		},
		{
			name: "slurm.dir", want: "want an absolute path",
			fallback: func(_ surroundings, c Config) string { return filepath.Join(c.State, "slurm") },
			printed:  "the folder slurm of state",
			doc:      "directory of what the driver for Slurm remembers of jobs",
			set:      func(c *Config, s string) error { return setPath(&c.Slurm.Dir, s) },
		},
		{
			name: "slurm.bin", want: "want an absolute path, or nothing",
			fallback: func(surroundings, Config) string { return "" },
			printed:  "found by PATH",
			doc:      "directory of squeue, scontrol, sbatch and their like",
			set:      func(c *Config, s string) error { return setMaybePath(&c.Slurm.Bin, s) },
		},
		{
			name: "slurm.conf", want: "want an absolute path, or nothing",
			fallback: func(surroundings, Config) string { return "" },
			printed:  "what SLURM_CONF names, or the site's",
			doc:      "configuration of the cluster for Slurm's commands",
			set:      func(c *Config, s string) error { return setMaybePath(&c.Slurm.Conf, s) },
		},
		{
			name: "slurm.interval", want: "want a time from 100ms to 1m, such as 2s",
			fallback: func(surroundings, Config) string { return "2s" },
			doc:      "how often squeue is asked, unless that costs more than a hundredth of a core",
			set: func(c *Config, s string) error {
				return setPeriod(&c.Slurm.Interval, s, 100*time.Millisecond, time.Minute)
			},
		},
		{
			name: "slurm.wake", want: "want an absolute path, or nothing",
			fallback: func(surroundings, Config) string { return "" },
			printed:  "none",
			doc:      "file that the site's hooks touch when a job begins or ends, so that it is seen sooner",
			set:      func(c *Config, s string) error { return setMaybePath(&c.Slurm.Wake, s) },
		},
		{
			name: "slurm.rest", want: "want an absolute path, or nothing",
			fallback: func(surroundings, Config) string { return "" },
			printed:  "none, and sdiag is asked",
			doc:      "socket of a slurmrestd that runs as the controller's user, which is asked in place of sdiag whether anything happened",
			set:      func(c *Config, s string) error { return setMaybePath(&c.Slurm.Rest, s) },
		},
		{
			name: "slurm.partitions", want: "want names of partitions with commas between them, or nothing",
			fallback: func(surroundings, Config) string { return "" },
			printed:  "all",
			doc:      "partitions whose jobs are seen; a job that `pitchpipe run` submits goes to the first",
			set:      setPartitions,
		},
		{
			name: "slurm.task_prolog", want: "want true or false",
			fallback: func(surroundings, Config) string { return "false" },
			doc:      "the site runs the shipped task prolog, so that environment variables and live knobs can be changed",
			set: func(c *Config, s string) (err error) {
				c.Slurm.TaskProlog, err = strconv.ParseBool(s)
				return err
			},
		},
		{
			name: "slurm.settings", want: "want an absolute path",
			fallback: func(_ surroundings, c Config) string { return filepath.Join(c.State, "slurm-env") },
			printed:  "the folder slurm-env of state",
			doc:      "directory of the settings that the task prolog reads; it has to be where its configuration says, on a file system that all nodes see",
			set:      func(c *Config, s string) error { return setPath(&c.Slurm.Settings, s) },
		},
	}
}

// setMaybePath takes an absolute path, or nothing.
func setMaybePath(to *string, s string) error {
	if s == "" {
		*to = ""
		return nil
	}
	return setPath(to, s)
}

func setPeriod(to *time.Duration, s string, least, most time.Duration) error {
	d, err := tuning.ParseDuration(s)
	if err != nil {
		return err
	}
	if d < least || d > most {
		return fmt.Errorf("want a time from %v to %v", least, most)
	}
	*to = d
	return nil
}

func setPartitions(c *Config, s string) error {
	c.Slurm.Partitions = nil
	if s == "" {
		return nil
	}
	for name := range strings.SplitSeq(s, ",") {
		if name == "" || strings.ContainsAny(name, " |\n\t") {
			return errors.New("want names of partitions with commas between them")
		}
		c.Slurm.Partitions = append(c.Slurm.Partitions, name)
	}
	return nil
}
