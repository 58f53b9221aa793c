package slurmcluster

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"pitchpipe/test/sandbox"
)

// slurmConf is the text of slurm.conf.
func (c *Cluster) slurmConf() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	host, _, _ = strings.Cut(host, ".")
	lines := []string{
		"ClusterName=" + clusterName,
		"SlurmctldHost=" + host + "(127.0.0.1)",
		fmt.Sprintf("SlurmctldPort=%d", c.ports[0]),
		"SlurmUser=" + slurmUser,
		// An exporter of the machine knows jobs by their numbers, whichever cluster's.
		fmt.Sprintf("FirstJobId=%d", c.ports[0]*1000),
		"AuthType=auth/munge",
		"AuthInfo=socket=" + c.path("munge", "s"),
		// Without these the daemons listen on every address of the machine.
		"CommunicationParameters=NoInAddrAny,NoCtldInAddrAny",
		"MessageTimeout=60",
		"StateSaveLocation=" + c.path("ctld"),
		"SlurmctldPidFile=" + c.path("run", "slurmctld.pid"),
		"SlurmctldLogFile=" + c.path("log", "slurmctld.log"),
		"SlurmdSpoolDir=" + c.path("d", "%n"),
		"SlurmdPidFile=" + c.path("run", "%n.pid"),
		"SlurmdLogFile=" + c.path("log", "%n.log"),
		"SlurmdParameters=config_overrides",
		"SlurmdTimeout=120",
		"ReturnToService=2",
		"SelectType=select/cons_tres",
		"SelectTypeParameters=CR_Core_Memory",
		"DefMemPerCPU=100",
		// Debian's defaults wait up to half a minute before a job is looked at.
		"SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2",
		"MpiDefault=none",
		"KillWait=5",
		"CompleteWait=0",
		"MinJobAge=300",
		"PrologFlags=Alloc",
		"JobAcctGatherFrequency=1",
	}
	if c.opts.Track == TrackCgroup {
		task := "TaskPlugin=task/cgroup,task/affinity"
		if c.opts.CPUs > runtime.NumCPU() {
			task = "TaskPlugin=task/cgroup"
		}
		lines = append(lines, "ProctrackType=proctrack/cgroup", "JobAcctGatherType=jobacct_gather/cgroup", task, "PrologFlags=Alloc,Contain")
	} else {
		lines = append(lines, "ProctrackType=proctrack/linuxproc", "JobAcctGatherType=jobacct_gather/linux", "TaskPlugin=task/none")
	}
	if c.opts.Accounting {
		lines = append(
			lines, "AccountingStorageType=accounting_storage/slurmdbd", "AccountingStorageHost=127.0.0.1",
			fmt.Sprintf("AccountingStoragePort=%d", c.ports[1]), "AccountingStoreFlags=job_comment,job_env,job_script",
			// With munge this is the socket for talking to slurmdbd.
			"AccountingStoragePass="+c.path("munge", "s"),
		)
	} else {
		lines = append(lines, "AccountingStorageType=accounting_storage/none")
	}
	if c.opts.JobSubmitLua != "" {
		lines = append(lines, "JobSubmitPlugins=lua")
	}
	if c.opts.TaskProlog != "" {
		lines = append(lines, "TaskProlog="+c.path("etc", "task_prolog"))
	}
	lines = merge(lines, c.opts.Lines)
	for i, n := range c.nodes {
		lines = append(lines, fmt.Sprintf("NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=%d RealMemory=%d State=UNKNOWN",
			n, host, c.ports[3+i], c.opts.CPUs, c.opts.MemoryMB))
	}
	if !slices.ContainsFunc(c.opts.Lines, func(l string) bool { return strings.HasPrefix(l, "PartitionName=") }) {
		lines = append(lines, "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO")
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// merge replaces lines of the same key, and keeps every partition.
func merge(lines, more []string) []string {
	var out []string
	for _, l := range slices.Concat(lines, more) {
		key, _, _ := strings.Cut(l, "=")
		i := slices.IndexFunc(out, func(o string) bool { return strings.HasPrefix(o, key+"=") })
		if i < 0 || key == "PartitionName" {
			out = append(out, l)
		} else {
			out[i] = l
		}
	}
	return out
}

func (c *Cluster) dbdConf() string {
	return strings.Join([]string{
		"AuthType=auth/munge",
		"AuthInfo=socket=" + c.path("munge", "s"),
		"CommunicationParameters=NoInAddrAny",
		"DbdHost=localhost",
		"DbdAddr=127.0.0.1",
		fmt.Sprintf("DbdPort=%d", c.ports[1]),
		"SlurmUser=" + slurmUser,
		"LogFile=" + c.path("log", "slurmdbd.log"),
		"PidFile=" + c.path("run", "slurmdbd.pid"),
		"StorageType=accounting_storage/mysql",
		"StorageHost=127.0.0.1",
		fmt.Sprintf("StoragePort=%d", c.ports[2]),
		"StorageUser=slurm",
		"StoragePass=" + c.password,
		"StorageLoc=slurm_acct",
	}, "\n") + "\n"
}

func (c *Cluster) cgroupConf() string {
	bind := "ConstrainCores=yes"
	if c.opts.CPUs > runtime.NumCPU() {
		bind = "ConstrainCores=no"
	}
	return "CgroupPlugin=cgroup/v1\nCgroupMountpoint=" + sandbox.CgroupRoot + "\n" + bind + "\nConstrainRAMSpace=yes\nConstrainSwapSpace=no\n"
}

// folders makes the cluster's folder: daemons that are not root write only below
// their own parts of it.
func (c *Cluster) folders() error {
	owned := []struct {
		path, owner string
		mode        os.FileMode
	}{
		{"etc", slurmUser, 0o755},
		{"run", slurmUser, 0o755},
		{"log", slurmUser, 0o755},
		{"ctld", slurmUser, 0o700},
		{"db", slurmUser, 0o700},
		{"d", "root", 0o755},
		{"munge", mungeUser, 0o711},
		{"home", "root", 0o755},
		{"home/" + Alpha, Alpha, 0o700},
		{"home/" + Beta, Beta, 0o700},
		{"home/" + Operator, Operator, 0o700},
		{"home/" + Controller, Controller, 0o700},
	}
	for _, d := range owned {
		if err := c.mkdir(c.path(d.path), d.owner, d.mode); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if err := c.mkdir(c.path("d", n), "root", 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) mkdir(path, owner string, mode os.FileMode) error {
	if err := os.Mkdir(path, mode); err != nil {
		return err
	}
	who, err := lookup(owner)
	if err != nil {
		return err
	}
	return errors.Join(os.Chown(path, int(who.Uid), int(who.Gid)), os.Chmod(path, mode))
}

// files writes what the daemons read.
func (c *Cluster) files() error {
	conf, err := c.slurmConf()
	if err != nil {
		return err
	}
	key := make([]byte, 128)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	type file struct {
		path, owner string
		mode        os.FileMode
		text        []byte
	}
	list := []file{
		{c.Conf(), slurmUser, 0o644, []byte(conf)},
		{c.path("munge", "key"), mungeUser, 0o400, key},
	}
	if c.opts.Accounting {
		list = append(list, file{c.path("etc", "slurmdbd.conf"), slurmUser, 0o600, []byte(c.dbdConf())})
	}
	if c.opts.Track == TrackCgroup {
		list = append(list, file{c.path("etc", "cgroup.conf"), slurmUser, 0o644, []byte(c.cgroupConf())})
	}
	copies := map[string]string{"job_submit.lua": c.opts.JobSubmitLua, "task_prolog": c.opts.TaskProlog}
	for _, from := range c.opts.Files {
		copies[filepath.Base(from)] = from
	}
	for name, from := range copies {
		if from == "" {
			continue
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		list = append(list, file{c.path("etc", name), slurmUser, map[bool]os.FileMode{true: 0o755, false: 0o644}[name == "task_prolog"], text})
	}
	for _, f := range list {
		who, err := lookup(f.owner)
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.path, f.text, 0o600); err != nil {
			return err
		}
		if err := errors.Join(os.Chown(f.path, int(who.Uid), int(who.Gid)), os.Chmod(f.path, f.mode)); err != nil {
			return err
		}
	}
	return nil
}
