// Package site draws the job log of a synthetic site, and knows what its jobs need.
//
// Input: a seed and how large, how long and how busy the site is. Output: jobs as a log shows them, in the
// order of submission, each with the truth that no log shows: how long it runs on other numbers of cores.
//
// What is drawn follows published logs of parallel machines: few users submit most jobs, in sessions, by day
// more than by night and less at weekends; a user runs a few programs of steady habits; he asks for round time
// limits far above what he needs, a fifth of the programs for the most that is allowed, and some for too
// little; some jobs fail early; sizes are powers of two; some programs leave most of their cores or memory idle.
//
// The same seed always draws the same site.
package site
