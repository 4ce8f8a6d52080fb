import{$a as r}from"./chunk-W626PSYW.js";r();
