import{a as o}from"./chunk-OSNHHQMY.js";import"./chunk-QDAYF5J5.js";import"./chunk-WVZKNENU.js";export{o as Privacy};
