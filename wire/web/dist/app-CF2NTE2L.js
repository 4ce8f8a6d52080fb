import{db as r}from"./chunk-H2RS4LGK.js";r();
