import{a as o,b as r}from"./chunk-4JYT4QFG.js";import"./chunk-WKYJCQHX.js";export{r as ColourCard,o as ColourChoice};
