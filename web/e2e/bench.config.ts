import { defineConfig } from 'vitest/config';

// Measurements by hand: no test of CI depends on a time.
export default defineConfig({
  test: {
    include: ['e2e/**/*.bench.ts'],
    environment: 'node',
    globalSetup: 'e2e/scratch.ts',
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 120_000,
    retry: 0,
  },
});
