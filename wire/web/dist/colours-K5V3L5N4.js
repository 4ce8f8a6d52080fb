import{a as o,b as r}from"./chunk-GTXPZFTT.js";import"./chunk-BQJJFHAK.js";export{r as ColourCard,o as ColourChoice};
