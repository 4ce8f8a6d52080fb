import{a as o,b as r}from"./chunk-VTLQARYK.js";import"./chunk-BTJADNQE.js";export{r as ColourCard,o as ColourChoice};
