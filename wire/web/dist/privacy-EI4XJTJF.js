import{a as o}from"./chunk-G3OUM7ON.js";import"./chunk-M7KWKQGM.js";import"./chunk-UY5OSXFY.js";export{o as Privacy};
