import { defineConfig } from 'vitest/config';

// One browser and one store, shared by all tests: one file after the other.
export default defineConfig({
  test: {
    include: ['e2e/**/*.e2e.ts'],
    environment: 'node',
    globalSetup: 'e2e/scratch.ts',
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    retry: 0,
  },
});
