// Ways to wait in Go. Usage: waits WAY SECONDS
package main

import (
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

var (
	over  atomic.Bool
	taken atomic.Int32
	held  sync.Mutex
	news  = make(chan int, 4)
)

func wait(way string) {
	switch way {
	case "flag":
		for !over.Load() {
		}
	case "default":
		for !over.Load() {
			select {
			case <-news:
			default:
			}
		}
	case "exchange":
		for !taken.CompareAndSwap(0, 1) && !over.Load() {
		}
	case "try_lock":
		for !held.TryLock() && !over.Load() {
		}
	case "length":
		for len(news) == 0 && !over.Load() {
		}
	case "deadline":
		for end := time.Now().Add(time.Hour); time.Now().Before(end) && !over.Load(); {
		}
	}
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	taken.Store(1)
	held.Lock()
	done := make(chan int)
	go func() { wait(os.Args[1]); close(done) }()
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	over.Store(true)
	<-done
}
