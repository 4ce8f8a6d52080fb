import{sb as r}from"./chunk-P7DJDXXW.js";r();
