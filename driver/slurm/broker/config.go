package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// config is what `scontrol show config` says.
func (s *Server) config(ctx context.Context) (parse.Conf, error) {
	conf, err := slurmctl.Config(ctx, s.cfg.Runner)
	if _, ok := conf["AccountingStorageEnforce"]; err == nil && !ok {
		err = errors.New("the configuration does not say what is enforced")
	}
	return conf, err
}

// limited reports whether slurmctld looks at limits at all.
func limited(conf parse.Conf) bool {
	return conf.Has("AccountingStorageEnforce", "limits", "safe", "all")
}

// nodesFormat is what sinfo is asked for: cores of a socket and threads of a core.
const nodesFormat = "%Y|%Z"

// unit is by how many CPUs a job of these partitions gets them: the threads of a core, of
// the nodes of the cluster that have most, or of a socket, unless single CPUs are given.
func (s *Server) unit(ctx context.Context, conf parse.Conf, partitions []parse.Partition, names string) (int, error) {
	how := []string{conf["SelectTypeParameters"]}
	for _, p := range partitions {
		if p.Select != "" && slices.Contains(strings.Split(names, ","), p.Name) {
			how = append(how, p.Select)
		}
	}
	gives := func(what string) bool {
		return slices.ContainsFunc(how, func(s string) bool { return strings.Contains(strings.ToUpper(s), what) })
	}
	if gives("CR_CPU") && len(how) == 1 {
		return 1, nil
	}
	printed, err := command.Ask(ctx, s.cfg.Runner, "sinfo", "-h", "-a", "-e", "-o", nodesFormat)
	nodes, bad := parse.Rows("sinfo", printed, 2)
	if err = cmp.Or(err, bad); err != nil {
		return 0, err
	}
	most := 1
	for _, node := range nodes {
		c, err := strconv.Atoi(strings.TrimSuffix(node[0], "+"))
		t, err2 := strconv.Atoi(strings.TrimSuffix(node[1], "+"))
		if err := errors.Join(err, err2); err != nil || c < 1 || t < 1 {
			return 0, fmt.Errorf("%w: sinfo prints %.40q", parse.ErrFormat, strings.Join(node, "|"))
		}
		if gives("CR_SOCKET") {
			t *= c
		}
		most = max(most, t)
	}
	return most, nil
}

// rounded is a number of CPUs as they are given.
func rounded(cpus, unit int) int { return (cpus + unit - 1) / unit * unit }
