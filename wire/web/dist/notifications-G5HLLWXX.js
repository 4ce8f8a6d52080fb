import{a as o,b as r}from"./chunk-VY6KWZQE.js";import"./chunk-YQ5L3GLK.js";import"./chunk-NDPAIEZH.js";import"./chunk-BUYNQUEB.js";export{r as NotificationFields,o as Notifications};
